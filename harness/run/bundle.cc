#include "harness/run/bundle.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

#include "harness/run/archive.h"
#include "harness/run/bundle_text.h"
#include "harness/run/json_text.h"
#include "harness/run/prepare.h"
#include "harness/run/reproduce.h"
#include "harness/run/secrets.h"
#include "harness/scenario/files.h"
#include "harness/target/mask.h"
#include "harness/trace/secrets.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::ScenarioError;

constexpr std::uintmax_t kMostCacheBytes = std::uintmax_t{128} << 20;

bool is_core(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name == "core" || name.starts_with("core.") || name.ends_with(".core")) return true;
  std::ifstream in(file, std::ios::binary);
  char head[18] = {};
  in.read(head, sizeof head);
  // e_type of an ELF file, little endian: ET_CORE.
  return in.gcount() == sizeof head &&
         std::string_view(head, 4) ==
             "\x7f"
             "ELF" &&
         head[16] == 4 && head[17] == 0;
}

// Runs of a report: what workers printed, without their traces.
std::vector<KeptRun> runs_of(const json& report) {
  std::vector<KeptRun> out;
  for (const json& scenario : report.value("scenarios", json::array())) {
    for (const json& variant : scenario.value("variants", json::array())) {
      for (const json& run : variant.value("runs", json::array())) {
        KeptRun one{text_of(scenario, "name"),
                    text_of(variant, "name"),
                    run.value("repeat", 0),
                    nullptr,
                    {}};
        for (const json& output : run.value("outputs", json::array()))
          one.outputs.push_back({output.value("rank", 0), text_of(output, "stream"),
                                 output.value("bytes", std::uint64_t{0}), text_of(output, "head"),
                                 text_of(output, "tail"), texts_of(output, "matched")});
        out.push_back(std::move(one));
      }
    }
  }
  return out;
}

// The scenarios that a report speaks of, as far as they are still what they were.
void load_scenarios(const json& report, const json& call, std::vector<scenario::Scenario>& out,
                    std::vector<std::string>& left_out) {
  scenario::LoadOptions load;
  load.device = text_of(call, "device");
  load.overlays = texts_of(call, "set");
  for (const std::string& file : texts_of(call, "scenarios")) {
    try {
      out.push_back(scenario::load_scenario(file, load));
    } catch (const ScenarioError& error) {
      left_out.push_back(fmt::format("{}: {}", file, error.problems().front().text()));
      continue;
    }
    for (const json& scenario : report.value("scenarios", json::array())) {
      if (text_of(scenario, "path") != file) continue;
      for (const json& variant : scenario.value("variants", json::array())) {
        for (const scenario::Variant& now : out.back().variants) {
          if (now.name == text_of(variant, "name") && now.identity != text_of(variant, "identity"))
            left_out.push_back(
                fmt::format("{}: variant {} is no longer what ran; it is bundled as it is now",
                            file, now.name));
        }
      }
    }
  }
}

void keep_report(const fs::path& file, const fs::path& folder,
                 const std::vector<std::string>& secrets) {
  const json report = read_report(file);
  const json call = report.value("call", json::object());
  if (text_of(call, "verb").empty())
    refuse_file(file, "does not say how it was made; it is older than report/1.1");
  Kept kept;
  kept.call = call;
  kept.environment = report.value("machine", json::object());
  kept.command = text_of(report, "command");
  kept.secrets = secrets;
  kept.left_out.push_back("traces: a JSON report has none; run with --keep DIR and bundle that");
  try {
    kept.runs = runs_of(report);
    std::vector<scenario::Scenario> scenarios;
    load_scenarios(report, call, scenarios, kept.left_out);
    if (scenarios.empty()) refuse_file(file, "none of its scenarios can be read any more");
    std::vector<const scenario::Scenario*> pointers;
    for (const scenario::Scenario& each : scenarios) pointers.push_back(&each);
    kept.secrets = trace::spellings([&] {
      std::vector<std::string> every = secrets, more = known_secrets(pointers, {});
      every.insert(every.end(), more.begin(), more.end());
      return every;
    }());
    json masked = report;
    target::mask_json(masked, kept.secrets);
    kept.report = pretty(masked);
    kept.scenarios = std::move(pointers);
    write_kept(folder, kept);
  } catch (const json::exception& error) {
    refuse_file(file, std::string("is no whole report: ") + error.what());
  }
}

// From a kept folder to one that may be sent away.
class Filter {
 public:
  Filter(fs::path from, fs::path to, const BundleWish& wish)
      : from_(std::move(from)), to_(std::move(to)), wish_(wish) {}

  Bundled run() {
    const fs::path file = from_ / "bundle.json";
    manifest_ = json::parse(read_whole(file), nullptr, false);
    if (!text_of(manifest_, "schema").starts_with("bundle/1."))
      refuse_file(file, "its schema is '" + text_of(manifest_, "schema") +
                            "'; this program reads bundle/1");
    left_out_ = texts_of(manifest_, "left_out");
    std::vector<fs::path> files;
    for (auto it =
             fs::recursive_directory_iterator(from_, fs::directory_options::skip_permission_denied);
         it != fs::recursive_directory_iterator(); ++it) {
      // Links lead out of what was kept.
      if (it->is_symlink()) {
        note(it->path().lexically_relative(from_).string() + ": a link");
        if (it->is_directory()) it.disable_recursion_pending();
        continue;
      }
      if (it->is_regular_file()) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& each : files) take(each);
    if (wish_.caches) caches();
    if (dropped_ > 0)
      note(fmt::format("prompts and answers in {} files; --with prompts keeps them", dropped_));
    manifest_["left_out"] = left_out_;
    manifest_["files"] = listed_;
    write_whole(to_ / "bundle.json", pretty(manifest_));
    Bundled out;
    out.files = listed_.size() + 1;
    out.left_out = left_out_;
    return out;
  }

  const json& manifest() const { return manifest_; }

 private:
  void note(std::string line) { left_out_.push_back(std::move(line)); }

  void put(const std::string& name, std::string_view bytes, const fs::path& like) {
    write_whole(to_ / name, bytes);
    std::error_code failed;
    if ((fs::status(like, failed).permissions() & fs::perms::owner_exec) != fs::perms::none)
      fs::permissions(to_ / name, fs::perms::owner_exec, fs::perm_options::add);
    listed_.push_back(
        {{"path", name}, {"bytes", bytes.size()}, {"sha256", trace::sha256_hex(bytes)}});
  }

  void take(const fs::path& file) {
    const fs::path relative = file.lexically_relative(from_);
    const std::string name = relative.string();
    const std::string part = relative.begin()->string();
    static const std::set<std::string> kParts = {
        "report.json", "environment.json", "trees", "fixtures", "extra", "resolved",
        "runs",        "caches",           "cores", "prompts"};
    if (name == "bundle.json") return;
    if (kParts.count(part) == 0) return note(name + ": no part of a run");
    if (is_core(file) || part == "cores") {
      if (!wish_.cores) return note(name + ": a core dump; --with cores takes it along");
    } else if (part == "caches") {
      if (!wish_.caches) return note(name + ": of a cache; --with caches takes it along");
    } else if (part == "prompts") {
      if (!wish_.prompts) return note(name + ": prompts; --with prompts takes them along");
    } else if (!wish_.prompts && (part == "runs" || part == "report.json")) {
      std::string bytes = read_whole(file), clean = clean_of(file, bytes);
      if (clean != bytes) ++dropped_;
      return put(name, clean, file);
    }
    put(name, read_whole(file), file);
  }

  static std::string clean_of(const fs::path& file, const std::string& bytes) {
    if (file.extension() == ".json") {
      json value = json::parse(bytes, nullptr, false);
      return !value.is_discarded() && drop_prompts(value) ? pretty(value) : bytes;
    }
    if (file.extension() != ".jsonl") return without_prompts(bytes);
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
      const std::string line = bytes.substr(at, end - at);
      json value = json::parse(line, nullptr, false);
      out += !value.is_discarded() && drop_prompts(value)
                 ? value.dump(-1, ' ', false, json::error_handler_t::replace)
                 : line;
      if (end < bytes.size()) out += '\n';
      at = end + 1;
    }
    return out;
  }

  void caches() {
    const json environment = json::parse(read_whole(from_ / "environment.json"), nullptr, false);
    std::uintmax_t room = kMostCacheBytes;
    if (!environment.is_object()) return;
    for (const json& cache : environment.value("caches", json::array())) {
      const fs::path folder = text_of(cache, "path");
      std::error_code failed;
      if (folder.empty() || text_of(cache, "state") != "filled" ||
          !fs::is_directory(folder, failed))
        continue;
      std::uintmax_t bytes = 0;
      std::vector<fs::path> files;
      for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end;
           it.increment(failed)) {
        if (it->is_symlink() || !it->is_regular_file()) continue;
        bytes += it->file_size();
        files.push_back(it->path());
        if (bytes > room) break;
      }
      if (bytes > room) {
        note(fmt::format("{}: the cache {} is larger than what is left of 128 MiB", folder.string(),
                         text_of(cache, "name")));
        continue;
      }
      room -= bytes;
      std::string name = text_of(cache, "name");
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ' ' || c == '/'; }, '-');
      for (const fs::path& file : files)
        put("caches/" + name + "/" + file.lexically_relative(folder).string(), read_whole(file),
            file);
    }
  }

  fs::path from_, to_;
  const BundleWish& wish_;
  json manifest_, listed_ = json::array();
  std::vector<std::string> left_out_;
  std::size_t dropped_ = 0;
};

std::string default_name(const json& manifest) {
  const std::vector<std::string> files = texts_of(manifest["call"], "scenarios");
  const std::string stem = files.size() == 1 ? fs::path(files[0]).stem().string() : "warmgate-gate";
  return stem + "-" + text_of(manifest["call"], "verb") + ".tar.gz";
}

}  // namespace

Bundled make_bundle(const fs::path& run, const fs::path& output, const BundleWish& wish,
                    const std::vector<std::string>& secrets) {
  const RunDir stage("bundle");
  std::error_code failed;
  fs::path kept = run;
  if (fs::is_directory(run, failed)) {
    if (!fs::is_regular_file(run / "bundle.json", failed))
      refuse_file(run, "is no folder that --keep wrote: it holds no bundle.json");
  } else if (fs::is_regular_file(run, failed)) {
    kept = stage.path() / "kept";
    keep_report(run, kept, secrets);
  } else {
    refuse_file(run, "there is no such report or folder");
  }
  const fs::path clean = stage.path() / "bundle";
  fs::create_directories(clean);
  Filter filter(kept, clean, wish);
  Bundled out = filter.run();
  out.file = output.empty() ? fs::path(default_name(filter.manifest())) : output;
  pack(clean, out.file);
  out.bytes = fs::file_size(out.file, failed);
  out.command = shell_line({program_name(), "run", out.file.string()});
  return out;
}

}  // namespace warmgate::run
