#include "harness/run/kept.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>

#include "harness/run/json_text.h"
#include "harness/run/prepare.h"
#include "harness/run/rows.h"
#include "harness/scenario/files.h"
#include "harness/target/environment.h"
#include "harness/target/mask.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Of files that a scenario is made of, and of programs beside it.
constexpr std::uintmax_t kLargestFile = 4 << 20;

std::string label(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '=' || c == '-';
    out += plain ? c : '-';
    if (out.size() == 60) break;
  }
  return out.empty() ? "unnamed" : out;
}

bool is_inside(const fs::path& root, const fs::path& path) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

class Folder {
 public:
  Folder(const fs::path& root, const Kept& kept) : root_(root), kept_(kept) {}

  void write() {
    fs::create_directories(root_);
    json scenarios = json::array();
    for (const scenario::Scenario* scenario : kept_.scenarios) {
      add_scenario(*scenario);
      scenarios.push_back(placed_[canonical(scenario->path)]);
    }
    json call = kept_.call;
    call["scenarios"] = scenarios;
    for (const char* list : {"metrics", "contracts"}) call[list] = add_extra(call, list);
    target::mask_json(call, kept_.secrets);
    put("report.json", kept_.report);
    json environment = kept_.environment;
    target::mask_json(environment, kept_.secrets);
    put("environment.json", pretty(environment));
    for (const KeptRun& run : kept_.runs) add_run(run);

    json manifest;
    manifest["schema"] = kBundleSchema;
    manifest["warmgate"] = WARMGATE_VERSION;
    manifest["at"] = utc_now();
    manifest["command"] = trace::mask_secrets(kept_.command, kept_.secrets);
    manifest["call"] = std::move(call);
    manifest["masked"] = masked_;
    json left_out = json::array();
    left_out_.insert(left_out_.begin(), kept_.left_out.begin(), kept_.left_out.end());
    for (const std::string& line : left_out_)
      left_out.push_back(trace::mask_secrets(line, kept_.secrets));
    manifest["left_out"] = std::move(left_out);
    json needed = json::array();
    for (const std::string& word : needed_)
      needed.push_back(trace::mask_secrets(word, kept_.secrets));
    manifest["needed"] = std::move(needed);
    manifest["files"] = files_;
    put("bundle.json", pretty(manifest));
  }

 private:
  static fs::path canonical(const fs::path& path) {
    std::error_code failed;
    const fs::path real = fs::weakly_canonical(fs::absolute(path), failed);
    return failed ? path : real;
  }

  void put(const std::string& name, std::string_view text, bool executable = false) {
    const fs::path file = root_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file.string());
    if (executable) fs::permissions(file, fs::perms::owner_exec, fs::perm_options::add);
    files_.push_back({{"path", name}, {"bytes", text.size()}, {"sha256", trace::sha256_hex(text)}});
  }

  // A text with its secrets gone. The mark must leave YAML legal.
  std::string masked_text(const fs::path& file, const std::string& name) {
    const std::string text = read_whole(file);
    std::string out = trace::mask_secrets(text, kept_.secrets);
    if (out == text) return out;
    masked_.push_back(name);
    for (std::size_t at = out.find(trace::kMask); at != out.npos;
         at = out.find(trace::kMask, at + kLeftOut.size()))
      out.replace(at, trace::kMask.size(), kLeftOut);
    return out;
  }

  void add_file(const fs::path& file, const std::string& name) {
    if (!placed_.emplace(canonical(file), name).second) return;
    std::error_code failed;
    const bool fits =
        fs::is_regular_file(file, failed) && fs::file_size(file, failed) <= kLargestFile;
    if (failed || !fits) {
      left_out_.push_back(file.string() + ": larger than 4 MiB, or no plain file");
      return;
    }
    const bool executable =
        (fs::status(file, failed).permissions() & fs::perms::owner_exec) != fs::perms::none;
    put(name, masked_text(file, name), executable);
  }

  std::string tree_name(const fs::path& tree) {
    const auto [it, fresh] = trees_.emplace(tree, trees_.size());
    return fmt::format("trees/{}/scenarios", it->second);
  }

  void add_scenario(const scenario::Scenario& scenario) {
    const fs::path own = canonical(scenario.path);
    const fs::path tree = scenario::tree_of(own);
    const fs::path fixtures = canonical(scenario::find_fixtures({}));
    const auto place = [&](const fs::path& file) {
      const fs::path real = canonical(file);
      if (is_inside(tree, real))
        return add_file(real, tree_name(tree) + "/" + real.lexically_relative(tree).string());
      // Presets and behaviours: fixtures/models/x.yaml, wherever the fixtures are.
      if (is_inside(fixtures, real))
        return add_file(real, "fixtures/" + real.lexically_relative(fixtures).string());
      const std::string kind = real.parent_path().filename().string();
      if (kind == "models" || kind == "behaviours" || kind == "servers")
        return add_file(real, "fixtures/" + kind + "/" + real.filename().string());
      left_out_.push_back(real.string() + ": outside of the scenario's tree and of the fixtures");
    };
    place(own);
    for (const fs::path& file : scenario.files) place(file);
    std::error_code failed;
    if (fs::is_regular_file(scenario.accepted_path(), failed)) place(scenario.accepted_path());
    for (const scenario::Variant& variant : scenario.variants) {
      add_programs(variant.target.argv, own.parent_path() / variant.target.cwd, tree);
      if (variant.target.server) {
        for (const scenario::ServerMember& member : variant.target.server->members) {
          const fs::path home = own.parent_path() / member.cwd;
          add_programs(member.argv, home, tree);
          add_programs(member.args, home, tree);
        }
      }
      json resolved = scenario::resolve_json(variant);
      target::mask_json(resolved, kept_.secrets);
      const std::string name =
          "resolved/" + label(scenario.name) + "." + label(variant.name) + ".json";
      if (resolved_.insert(name).second) put(name, pretty(resolved));
    }
  }

  // Programs that stand beside the scenario come along; what lies elsewhere has to be there, and
  // what a command reads (prompts, weights) is left out.
  void add_programs(const std::vector<std::string>& argv, const fs::path& home,
                    const fs::path& tree) {
    for (std::size_t i = 0; i < argv.size(); ++i) {
      const std::string& word = argv[i];
      std::error_code failed;
      if (word.empty() || word.size() > 1024 || word.front() == '-') continue;
      const fs::path file = canonical(home / word);
      if (!fs::is_regular_file(file, failed)) continue;
      if (placed_.count(file) > 0) continue;
      if (fs::path(word).is_absolute() || !is_inside(tree, file)) {
        note_missing(word, file);
        continue;
      }
      static const std::set<std::string> kPrograms = {".py", ".sh", ".js",   ".mjs", ".cjs",
                                                      ".pl", ".rb", ".yaml", ".yml", ".toml"};
      const bool runs =
          (fs::status(file, failed).permissions() & fs::perms::owner_exec) != fs::perms::none;
      if (i == 0 || runs || kPrograms.count(file.extension().string()) > 0) {
        add_file(file, tree_name(tree) + "/" + file.lexically_relative(tree).string());
      } else {
        note_missing(word, file);
      }
    }
  }

  void note_missing(const std::string& word, const fs::path& file) {
    // A command's folder in a bundle is another one each time that it is opened.
    const std::string line =
        fs::path(word).is_absolute()
            ? word + ": named by a command; it has to be there"
            : fmt::format(
                  "{}: named by a command, and not found from the bundle's folder; it was "
                  "{}: name it by that path to repeat the run",
                  word, file.string());
    if (std::find(left_out_.begin(), left_out_.end(), line) != left_out_.end()) return;
    left_out_.push_back(line);
    needed_.push_back(word);
  }

  json add_extra(const json& call, const char* list) {
    json out = json::array();
    if (!call.contains(list)) return out;
    for (std::size_t i = 0; i < call[list].size(); ++i) {
      const fs::path file = call[list][i].get<std::string>();
      const std::string name = fmt::format("extra/{}-{}-{}", list, i, label(file.stem().string())) +
                               file.extension().string();
      add_file(file, name);
      out.push_back(placed_[canonical(file)]);
    }
    return out;
  }

  void add_run(const KeptRun& run) {
    const std::string folder =
        fmt::format("runs/{}.{}.{}/", label(run.scenario), label(run.variant), run.repeat);
    if (run.trace != nullptr) {
      std::string lines;
      for (trace::Event event : run.trace->events) {
        json body = event.body.to_json();
        target::mask_json(body, kept_.secrets);
        event.body = trace::Fields(body);
        lines += trace::to_line(event) + "\n";
      }
      put(folder + "trace.jsonl", lines);
    }
    std::set<std::string> names;
    for (const verdict::Output& output : run.outputs) {
      std::string name = fmt::format("rank{}.{}.log", output.rank, label(output.stream));
      if (!names.insert(name).second) continue;
      std::string text = trace::mask_secrets(output.head, kept_.secrets);
      if (!output.tail.empty()) {
        const std::uint64_t shown = output.head.size() + output.tail.size();
        text += fmt::format(
            "\n[warmgate: {} bytes were not kept; {} lines of them look like a "
            "cause:]\n",
            output.bytes - std::min(shown, output.bytes), output.matched.size());
        for (const std::string& line : output.matched)
          text += trace::mask_secrets(line, kept_.secrets) + "\n";
        text += "[warmgate: the end:]\n" + trace::mask_secrets(output.tail, kept_.secrets);
      }
      put(folder + name, text);
    }
  }

  fs::path root_;
  const Kept& kept_;
  std::map<fs::path, std::string> placed_;  // canonical path → name in the folder
  std::map<fs::path, std::size_t> trees_;
  std::set<std::string> resolved_;
  std::vector<std::string> masked_, left_out_, needed_;
  json files_ = json::array();
};

}  // namespace

json call_json(const std::string& verb, const std::vector<fs::path>& files,
               const std::vector<std::string>& sides, const Options& options) {
  json out;
  out["verb"] = verb;
  out["scenarios"] = json::array();
  for (const fs::path& file : files) out["scenarios"].push_back(file.string());
  out["sides"] = sides;
  out["variants"] = options.variants;
  out["device"] = options.load.device;
  out["set"] = options.load.overlays;
  out["expect"] = options.expect;
  out["repeat"] = options.repeat;
  out["jobs"] = options.jobs;
  out["jit"] = to_string(options.jit);
  out["no_cache"] = options.no_cache;
  out["probes"] = options.probes;
  out["today"] = options.today;
  out["timeout_s"] = options.timeout_s ? json(*options.timeout_s) : json(nullptr);
  for (const auto& [name, list] :
       {std::pair{"metrics", &options.metrics}, std::pair{"contracts", &options.contracts}}) {
    out[name] = json::array();
    for (const fs::path& file : *list) out[name].push_back(file.string());
  }
  return out;
}

void check_keep_folder(const fs::path& folder) {
  std::error_code failed;
  // Some places (/proc) say no only to whoever tries.
  if (fs::path parent = fs::absolute(folder, failed).lexically_normal().parent_path();
      fs::is_directory(parent, failed) && !fs::exists(folder, failed)) {
    std::error_code refused;
    if (!fs::create_directory(folder, refused) || refused)
      throw std::runtime_error(folder.string() + ": cannot be made: " + refused.message());
    fs::remove(folder, failed);
  }
  if (!fs::exists(folder, failed)) {
    // It is made at the end; whether it can be is said now.
    fs::path above = fs::absolute(folder, failed).lexically_normal();
    if (!above.has_filename()) above = above.parent_path();
    do {
      above = above.parent_path();
    } while (!fs::exists(fs::symlink_status(above, failed)) && above.has_relative_path());
    if (!fs::is_directory(above, failed))
      throw std::runtime_error(
          fmt::format("{} cannot be made: {} is no folder", folder.string(), above.string()));
    if (::access(above.c_str(), W_OK | X_OK) != 0)
      throw std::runtime_error(fmt::format("{} cannot be made: {}: {}", folder.string(),
                                           above.string(), std::strerror(errno)));
    return;
  }
  if (!fs::is_directory(folder, failed))
    throw std::runtime_error(folder.string() + " is not a folder");
  // A kept one is written anew; anything else is somebody's own.
  const bool ours = fs::exists(folder / "bundle.json", failed);
  if (!ours && !fs::is_empty(folder, failed))
    throw std::runtime_error(folder.string() +
                             " is not empty, and no folder that --keep wrote; name another");
}

void write_kept(const fs::path& folder, const Kept& kept) {
  check_keep_folder(folder);
  // Of an earlier call nothing may stay that this one does not write.
  for (const char* part : {"bundle.json", "report.json", "environment.json", "trees", "fixtures",
                           "extra", "resolved", "runs"})
    fs::remove_all(folder / part);
  Folder(folder, kept).write();
}

std::vector<KeptRun> kept_runs(const GateResult& result) {
  std::vector<KeptRun> out;
  for (const ScenarioResult& scenario : result.scenarios) {
    for (const VariantResult& variant : scenario.variants) {
      for (const verdict::RunRecord& run : variant.runs)
        out.push_back(
            {scenario.scenario.name, variant.variant.name, run.repeat, &run.trace, run.outputs});
    }
  }
  return out;
}

}  // namespace warmgate::run
