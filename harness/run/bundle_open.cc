// Bundles, opened to be repeated. What a manifest says is held against what is there.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/run/archive.h"
#include "harness/run/bundle.h"
#include "harness/run/json_text.h"
#include "harness/scenario/files.h"
#include "harness/trace/secrets.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::ScenarioError;

// Everything that the manifest lists is there as it says, and nothing else is.
void check_files(const fs::path& root, const json& manifest) {
  std::set<std::string> listed = {"bundle.json"};
  for (const json& file : manifest.value("files", json::array())) {
    const std::string name = text_of(file, "path");
    std::error_code failed;
    if (name.empty() || !fs::is_regular_file(root / name, failed))
      refuse_file(root / "bundle.json",
                  fmt::format("lists '{}', which is not in the bundle", name));
    if (trace::sha256_hex(read_whole(root / name)) != text_of(file, "sha256"))
      refuse_file(root / name, "is not what bundle.json says (SHA-256)");
    listed.insert(name);
  }
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().lexically_relative(root).string();
    if (entry.is_regular_file() && listed.count(name) == 0)
      refuse_file(entry.path(), "is not listed in bundle.json");
  }
}

// A path of the manifest, which may say anything.
fs::path inside(const fs::path& root, const std::string& name) {
  const fs::path wish(name);
  bool plain = !name.empty() && wish.is_relative();
  for (const fs::path& part : wish) plain = plain && part != ".." && part != "." && !part.empty();
  std::error_code failed;
  if (!plain || !fs::is_regular_file(root / wish, failed) || fs::is_symlink(root / wish, failed))
    refuse_file(root / "bundle.json",
                fmt::format("'{}' is no file of the bundle", name.substr(0, 200)));
  return root / wish;
}

// The bundle's own fixtures, and those of this build where it has none.
void merge_fixtures(const fs::path& bundled, const fs::path& merged) {
  const fs::path installed = fs::absolute(scenario::find_fixtures({}));
  for (const auto& [from, link] : {std::pair{bundled, false}, std::pair{installed, true}}) {
    std::error_code failed;
    for (fs::recursive_directory_iterator it(from, failed), end; !failed && it != end;
         it.increment(failed)) {
      if (it.depth() > 4) it.disable_recursion_pending();
      const fs::path target = merged / it->path().lexically_relative(from);
      if (!it->is_regular_file() || fs::exists(target)) continue;
      fs::create_directories(target.parent_path());
      if (link) {
        fs::create_symlink(it->path(), target);
      } else {
        fs::copy_file(it->path(), target);
      }
    }
  }
}

template <typename T>
T checked(const json& call, const char* key, T fallback, const fs::path& file) {
  const auto it = call.find(key);
  if (it == call.end() || it->is_null()) return fallback;
  try {
    return it->get<T>();
  } catch (const json::exception&) {
    refuse_file(file, fmt::format("call.{} is of another type", key));
  }
}

}  // namespace

bool is_bundle(const fs::path& path) {
  std::error_code failed;
  return looks_like_archive(path) ||
         (fs::is_directory(path, failed) && fs::is_regular_file(path / "bundle.json", failed));
}

OpenBundle open_bundle(const fs::path& path) {
  OpenBundle out{RunDir("bundle"), {}, {}, {}, {}, {}, {}, {}};
  std::error_code failed;
  const bool folder = fs::is_directory(path, failed);
  out.root = folder ? fs::absolute(path) : out.dir.path() / "bundle";
  if (!folder) {
    fs::create_directories(out.root);
    try {
      unpack(path, out.root);
    } catch (const std::runtime_error& error) {
      throw ScenarioError({{path.string(), 0, 0, "", error.what()}});
    }
  }
  const fs::path file = out.root / "bundle.json";
  if (!fs::is_regular_file(file, failed))
    refuse_file(path, "is no bundle: it holds no bundle.json");
  const json manifest = json::parse(read_whole(file), nullptr, false);
  if (!manifest.is_object() || !text_of(manifest, "schema").starts_with("bundle/1."))
    refuse_file(path,
                fmt::format("its bundle.json has the schema '{}'; this program reads bundle/1",
                            text_of(manifest, "schema")));
  if (!folder) check_files(out.root, manifest);
  const json call = manifest.value("call", json::object());
  if (!call.is_object()) refuse_file(path, "its bundle.json has no call");
  out.verb = text_of(call, "verb");
  if (out.verb != "run" && out.verb != "ab" && out.verb != "gate")
    refuse_file(path,
                fmt::format("its verb '{}' is none of run, ab, gate", out.verb.substr(0, 40)));
  for (const std::string& name : texts_of(call, "scenarios"))
    out.scenarios.push_back(inside(out.root, name));
  if (out.scenarios.empty()) refuse_file(path, "holds no scenario");
  if (out.verb != "gate" && out.scenarios.size() != 1)
    refuse_file(path, fmt::format("{} takes one scenario, not {}", out.verb, out.scenarios.size()));
  out.sides = texts_of(call, "sides");
  Options& options = out.options;
  options.variants = texts_of(call, "variants");
  options.load.device = text_of(call, "device");
  for (const std::string& overlay : texts_of(call, "set")) {
    if (overlay.find(trace::kMask) == overlay.npos) {
      options.load.overlays.push_back(overlay);
    } else {
      out.notes.push_back("--set " + overlay + ": its value was a secret and is not in the bundle");
    }
  }
  options.expect = checked(call, "expect", true, file);
  options.repeat = std::clamp(checked(call, "repeat", 1, file), 1, 100000);
  options.jobs = std::clamp(checked(call, "jobs", 0, file), 0, 4096);
  options.no_cache = checked(call, "no_cache", false, file);
  options.probes = texts_of(call, "probes");  // unknown ones are refused as --probe refuses them
  options.today = text_of(call, "today");
  const double timeout = checked(call, "timeout_s", 0.0, file);
  if (timeout > 0 && timeout < 1e7) options.timeout_s = timeout;
  const std::string jit = text_of(call, "jit");
  options.jit = jit == "host"    ? jit::Backend::kHost
                : jit == "nvrtc" ? jit::Backend::kNvrtc
                                 : jit::Backend::kAuto;
  for (const std::string& name : texts_of(call, "metrics"))
    options.metrics.push_back(inside(out.root, name));
  for (const std::string& name : texts_of(call, "contracts"))
    options.contracts.push_back(inside(out.root, name));
  options.bundle = path;
  if (fs::is_directory(out.root / "fixtures", failed)) {
    options.load.fixtures = out.dir.path() / "fixtures";
    merge_fixtures(out.root / "fixtures", options.load.fixtures);
  }
  for (const std::string& line : texts_of(manifest, "left_out"))
    out.notes.push_back("not in the bundle: " + line);
  // A relative one would have to lie in the bundle, whose folder is another one each time.
  for (const std::string& word : texts_of(manifest, "needed"))
    if (!fs::path(word).is_absolute() || !fs::exists(word, failed)) out.missing.push_back(word);
  return out;
}

void refuse_missing(const OpenBundle& bundle, const fs::path& path) {
  std::vector<scenario::Problem> problems;
  for (const std::string& word : bundle.missing)
    problems.push_back(
        {path.string(), 0, 0, "",
         fmt::format("a command names '{}', which is neither in the bundle nor here; "
                     "unpack it, write the file's path into the scenario and run that",
                     word)});
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
}

void put_secrets_back(scenario::Scenario& scenario) {
  std::vector<scenario::Problem> problems;
  const auto arguments = [&](const std::string& variant, const std::vector<std::string>& argv) {
    for (const std::string& word : argv) {
      if (word.find(kLeftOut) == word.npos) continue;
      problems.push_back({scenario.path.string(), 0, 0, "variants." + variant,
                          "the command's argument '" + word +
                              "' held a secret, which is not in the bundle; unpack it and write it "
                              "back, or pass it in a variable"});
    }
  };
  // A variable that is not set here is inherited, which is where the secret now comes from.
  const auto variables = [](std::map<std::string, std::string>& env) {
    std::erase_if(
        env, [](const auto& entry) { return entry.second.find(kLeftOut) != std::string::npos; });
  };
  for (scenario::Variant& variant : scenario.variants) {
    arguments(variant.name, variant.target.argv);
    variables(variant.target.env);
    const scenario::Artefact& artefact = variant.artefact;
    for (const auto* words : {&artefact.command, &artefact.image.run, &artefact.wheel.pip,
                              &artefact.worktree.wheel.pip})
      arguments(variant.name, *words);
    arguments(variant.name, {artefact.wheel.url, artefact.wheel.from, artefact.worktree.repo,
                             artefact.worktree.wheel.url, artefact.worktree.wheel.from});
    if (!variant.target.server) continue;
    for (scenario::ServerMember& member : variant.target.server->members) {
      arguments(variant.name, member.argv);
      arguments(variant.name, member.args);
      variables(member.env);
    }
  }
  if (!problems.empty()) throw ScenarioError(std::move(problems));
}

}  // namespace warmgate::run
