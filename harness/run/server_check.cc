// What is wrong with a server target before it is started: names that its preset does not know,
// files that are not there.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "harness/run/fit.h"
#include "harness/run/server.h"
#include "harness/scenario/files.h"
#include "harness/scenario/problems.h"
#include "harness/target/launch.h"
#include "harness/target/server/stores.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using scenario::Problem;
using scenario::ServerMember;
using scenario::ServerTarget;
using target::ServerPreset;

namespace {

class PresetFit {
 public:
  PresetFit(const scenario::Scenario& scenario, const scenario::Variant& variant,
            const ServerPreset& preset)
      : scenario_(scenario), variant_(variant), server_(*variant.target.server), preset_(preset) {}

  std::vector<Problem> run() {
    commands();
    stores();
    classes();
    switches();
    grammars();
    return std::move(problems_);
  }

 private:
  void say(const std::string& key, const std::string& message) {
    problems_.push_back(problem_at(scenario_, variant_, {key, message}));
  }

  void commands() {
    const bool needs_form =
        std::any_of(server_.members.begin(), server_.members.end(),
                    [](const ServerMember& member) { return member.argv.empty(); });
    if (!needs_form) return;
    const target::CommandForm* form = preset_.command_for(server_.version);
    if (form == nullptr) {
      say(server_.version.empty() ? "target.server.preset" : "target.server.version",
          preset_.commands.empty()
              ? fmt::format("preset {} knows no command; add command", preset_.name)
              : fmt::format("preset {} knows no command for {}; add command", preset_.name,
                            server_.version));
      return;
    }
    for (const std::string& word : form->argv) {
      if (word.find("{model}") == std::string::npos || !server_.model.empty()) continue;
      say("target.server.model", "missing; the command of preset " + preset_.name + " needs one");
      return;
    }
  }

  void stores() {
    std::vector<std::string> known;
    for (const target::CacheStore& store : preset_.stores) known.push_back(store.name);
    for (const auto& [store, state] : server_.cache) {
      if (preset_.store(store) != nullptr) continue;
      const std::string meant = scenario::did_you_mean(store, known);
      say("target.server.cache." + store,
          fmt::format("preset {} has no store {}{}", preset_.name, scenario::shown(store),
                      meant.empty() ? "; it has " + scenario::list_of(known) : meant));
    }
  }

  void classes() {
    std::vector<std::string> known;
    for (const auto& [name, body] : preset_.completion.classes) known.push_back(name);
    for (const ServerTarget::Group& group : server_.workload) {
      const std::string& name = group.request_class;
      if (preset_.completion.classes.count(name) > 0) continue;
      say("workload.class",
          fmt::format("preset {} cannot ask for class {}; it has {}", preset_.name,
                      scenario::shown(name), scenario::list_of(known)));
    }
  }

  void switches() {
    for (const std::string& name : server_.with) {
      const target::Switches& all = name == "weightless" ? preset_.weightless : preset_.determinism;
      if (!all.argv.empty() || !all.env.empty()) continue;
      say("target.server.with",
          fmt::format("preset {} has no switches for {}", preset_.name, name));
    }
  }

  void grammars() {
    const fs::path folder = preset_.path.parent_path() / "log";
    const std::vector<std::string> known = target::preset_names(folder);
    for (const ServerMember& member : server_.members) {
      if (member.log.empty() || std::find(known.begin(), known.end(), member.log) != known.end()) {
        continue;
      }
      const bool alone = server_.members.size() == 1;
      const std::string meant = scenario::did_you_mean(member.log, known);
      say(alone ? "target.server.log" : "target.server.members." + member.name + ".log",
          fmt::format("no log grammar {}{}", scenario::shown(member.log),
                      meant.empty() ? "; there are " + scenario::list_of(known) : meant));
    }
  }

  const scenario::Scenario& scenario_;
  const scenario::Variant& variant_;
  const ServerTarget& server_;
  const ServerPreset& preset_;
  std::vector<Problem> problems_;
};

}  // namespace

ServerPreset preset_of(const ServerTarget& server, const fs::path& fixtures) {
  return target::find_preset(server.preset.empty() ? kPlainPreset : server.preset,
                             target::presets_folder(fixtures));
}

std::vector<Problem> server_problems(const scenario::Scenario& scenario,
                                     const scenario::Variant& variant, const fs::path& fixtures) {
  if (!variant.target.server) return {};
  try {
    const ServerPreset preset = preset_of(*variant.target.server, fixtures);
    return PresetFit(scenario, variant, preset).run();
  } catch (const scenario::ScenarioError& error) {
    return error.problems();
  }
}

std::string fill_in(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    out += text.substr(at, open - at);
    if (open == std::string::npos) break;
    const std::size_t close = text.find('}', open);
    const auto it = close == std::string::npos
                        ? values.end()
                        : values.find(text.substr(open + 1, close - open - 1));
    out += it == values.end() ? "{" : it->second;
    at = it == values.end() ? open + 1 : close + 1;
  }
  return out;
}

std::string find_model(const std::string& model, const fs::path& home,
                       const std::vector<std::string>& places, bool offline,
                       const std::map<std::string, std::string>& env) {
  if (model.empty()) return "";
  std::error_code error;
  const fs::path beside = (home / target::expand_folder(model, env)).lexically_normal();
  if (fs::exists(beside, error)) return beside.string();
  const bool path = model[0] == '/' || model[0] == '~' || model.rfind("./", 0) == 0 ||
                    model.rfind("../", 0) == 0 || places.empty();
  if (path) throw std::runtime_error(fmt::format("the model is missing: {}", beside.string()));
  if (!offline) return model;
  std::string name = model;
  for (std::size_t at = 0; (at = name.find('/', at)) != std::string::npos; at += 2) {
    name.replace(at, 1, "--");
  }
  std::string looked;
  for (const std::string& place : places) {
    const fs::path folder = target::expand_folder(fill_in(place, {{"model", name}}), env);
    if (folder.empty()) continue;  // a variable that is not set
    if (fs::exists(folder, error)) return model;
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  throw std::runtime_error(fmt::format(
      "the model is missing: {} is no path and was not downloaded (looked for {}), and nothing is "
      "downloaded while it is timed",
      model, looked.empty() ? "nothing" : looked));
}

void check_programs(const target::TargetSpec& spec) {
  for (const target::WorkerSpec& worker : spec.workers) {
    std::error_code error;
    if (!worker.cwd.empty() && !fs::is_directory(worker.cwd, error)) {
      throw std::runtime_error(fmt::format("the folder {} is missing", worker.cwd));
    }
    const auto own = worker.env.find("PATH");
    const char* inherited = std::getenv("PATH");
    const std::string path = own != worker.env.end() ? own->second : inherited ? inherited : "";
    const std::string& name = worker.argv.front();
    const std::string program = target::find_program(name, path);
    const bool file = program.find('/') != std::string::npos && fs::is_regular_file(program, error);
    if (file && ::access(program.c_str(), X_OK) == 0) continue;
    throw std::runtime_error(
        file ? fmt::format("the program {} is not executable", program)
        : name.find('/') != std::string::npos
            ? fmt::format("the program {} is missing", name)
            : fmt::format("the program {} is missing: it is in no folder of PATH", name));
  }
}

namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

// Our own engine takes the first that it sees, for all its ranks.
std::vector<std::string> gpu_of_native(const scenario::Variant& variant) {
  const bool on_gpu = std::any_of(variant.ranks.begin(), variant.ranks.end(),
                                  [](const auto& rank) { return rank.device == "cuda"; });
  if (!on_gpu) return {};
  std::optional<std::string> visible;
  if (const char* inherited = std::getenv(kVisible)) visible = inherited;
  if (const auto it = variant.target.env.find(kVisible); it != variant.target.env.end())
    visible = it->second;
  const std::vector<std::string> seen = target::visible_gpus(target::gpu_devices(), visible);
  return {seen.empty() ? std::string("first") : seen.front()};
}

}  // namespace

std::vector<std::string> gpus_of(const scenario::Variant& variant) {
  if (variant.target.kind == scenario::Target::Kind::kNative) return gpu_of_native(variant);
  if (!variant.target.server) return {};
  std::set<std::string> out;
  for (const ServerMember& member : variant.target.server->members) {
    std::optional<std::string> visible;
    if (const char* inherited = std::getenv(kVisible)) visible = inherited;
    for (const auto* env : {&variant.target.env, &member.env}) {
      if (const auto it = env->find(kVisible); it != env->end()) visible = it->second;
    }
    for (std::string& uuid : target::visible_gpus(target::gpu_devices(), visible)) {
      out.insert(std::move(uuid));
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace warmgate::run
