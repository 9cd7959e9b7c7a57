#include "harness/run/artefact/artefacts.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/makers.h"
#include "harness/run/server.h"
#include "harness/scenario/artefact_reader.h"
#include "harness/target/launch.h"
#include "harness/target/mask.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using scenario::Artefact;
using scenario::Target;

namespace {

constexpr std::string_view kPlace = "{artefact}";

std::string with_place(std::string text, std::string_view what, std::string_view by) {
  if (what.empty()) return text;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// What the scenario calls it.
std::string artefact_name(const Artefact& artefact, const std::vector<std::string>& argv) {
  const auto wheel = [](const scenario::WheelSource& from) {
    if (!from.path.empty()) return from.path;
    return from.commit.empty() ? scenario::bare_url(from.url) : "of commit " + from.commit;
  };
  switch (artefact.kind) {
    case Artefact::Kind::kNone:
      return "";
    case Artefact::Kind::kCommand:
      return argv.empty() ? "" : argv.front();
    case Artefact::Kind::kVenv:
      return artefact.venv;
    case Artefact::Kind::kWheel:
      return wheel(artefact.wheel);
    case Artefact::Kind::kImage:
      return artefact.image.name;
    case Artefact::Kind::kWorktree:
      return artefact.worktree.revision;
  }
  return "";
}

const std::vector<std::string>& command_of(const Target& target) {
  static const std::vector<std::string> none;
  if (!target.server) return target.argv;
  return target.server->members.empty() ? none : target.server->members.front().argv;
}

Ready make_one(const MakeContext& context, const Artefact& artefact) {
  switch (artefact.kind) {
    case Artefact::Kind::kNone:
    case Artefact::Kind::kCommand:
      return make_command(context);
    case Artefact::Kind::kVenv:
      return make_venv(context, artefact.venv);
    case Artefact::Kind::kWheel:
      return make_wheel(context, artefact.wheel);
    case Artefact::Kind::kImage:
      return make_image(context, artefact.image);
    case Artefact::Kind::kWorktree:
      return make_worktree(context, artefact.worktree);
  }
  return {};
}

// PATH and PYTHONPATH are added to; the rest gives way to what the scenario sets.
std::map<std::string, std::string> variables_of(const Ready& ready,
                                                std::map<std::string, std::string> own) {
  const auto before = [](const std::string& first, const std::string& rest) {
    return rest.empty() ? first : first + ":" + rest;
  };
  if (!ready.bin.empty()) {
    const char* ours = std::getenv("PATH");
    const auto path = own.find("PATH");
    own["PATH"] = before(ready.bin.string(),
                         path != own.end() ? path->second : std::string(ours ? ours : ""));
  }
  if (!ready.python_path.empty()) {
    std::string all;
    for (const std::string& folder : ready.python_path) all += (all.empty() ? "" : ":") + folder;
    own["PYTHONPATH"] = before(all, own["PYTHONPATH"]);
  }
  for (const auto& [name, value] : ready.env) own.emplace(name, value);
  if (!ready.root.empty()) own.emplace("WARMGATE_ARTEFACT", ready.root.string());
  return own;
}

// What the preset of a server adds: facts about builds, and the command where it is the preset's.
struct FromPreset {
  ArtefactFacts facts;
  std::vector<std::string> argv;
};

FromPreset ask_preset(const scenario::Variant& variant, const ArtefactOptions& options) {
  FromPreset out;
  if (!variant.target.server) return out;
  const scenario::ServerTarget& server = *variant.target.server;
  const target::ServerPreset preset = preset_of(server, options.fixtures);
  out.facts = {preset.builds.wheels, preset.builds.package, preset.builds.python_path,
               preset.builds.native_paths, preset.builds.native_files};
  const target::CommandForm* form = preset.command_for(server.version);
  if (form != nullptr) out.argv = form->argv;
  return out;
}

}  // namespace

void Artefacts::make(const scenario::Scenario& scenario, const scenario::Variant& variant,
                     const target::CancelToken& cancel, const BuildProgress& progress) {
  const bool server = variant.target.kind == Target::Kind::kServer;
  if ((variant.artefact.empty() && !server) || ready_.count(&variant) > 0) return;
  if (!store_) {
    store_ =
        std::make_unique<Store>(options_.cache.empty() ? default_artefact_cache() : options_.cache,
                                options_.rebuild, cancel);
  }
  store_->report_to(progress);
  Ready ready;
  const fs::path home = fs::absolute(scenario.path).parent_path();
  FromPreset preset;
  std::vector<std::string> argv = command_of(variant.target);
  try {
    preset = ask_preset(variant, options_);
    if (argv.empty()) argv = preset.argv;
    const MakeContext context{*store_, home, (home / variant.target.cwd).lexically_normal(),
                              preset.facts, argv};
    ready = make_one(context, variant.artefact);
  } catch (const std::exception& error) {
    // Nobody asked for an artefact, so none can be missing.
    if (variant.artefact.empty()) {
      ready.identity.notes.emplace_back(error.what());
    } else {
      ready.error = error.what();
    }
  }
  verdict::ArtefactIdentity& identity = ready.identity;
  identity.kind = variant.artefact.empty() ? "command" : to_string(variant.artefact.kind);
  identity.name = artefact_name(variant.artefact, argv);
  if (!ready.error.empty()) {
    ready.error = target::mask(fmt::format("{} {}: {}", identity.kind, identity.name, ready.error),
                               options_.secrets);
  }
  const Target own = filled_in(variant.target, ready);
  // What a list of differences needs: the artefact's own folder is no difference.
  const auto shown = [&](const std::string& value) {
    std::string text = with_place(value, ready.root.string(), kPlace);
    text = with_place(std::move(text), ready.bin.parent_path().string(), "{venv}");
    return target::mask(text, options_.secrets);
  };
  if (ready.container.empty() && !argv.empty()) {
    const char* path = std::getenv("PATH");
    identity.program = shown(target::find_program(
        argv.front(), ready.bin.string() + ":" + (path != nullptr ? path : "")));
  }
  const std::vector<std::string>& words = command_of(own).empty() ? argv : command_of(own);
  for (const std::string& word : words) identity.command.push_back(shown(word));
  std::map<std::string, std::string> variables = variables_of(ready, own.env);
  // It is the same for all variants but for what is put in front of it, unless they set it.
  if (own.env.count("PATH") == 0) variables.erase("PATH");
  for (const auto& [name, value] : variables) {
    std::string text = shown(value);
    if (target::is_secret_name(name) && !value.empty()) {
      const int number = secret_numbers_.emplace(value, secret_numbers_.size() + 1).first->second;
      text = fmt::format("[secret {}]", number);
    }
    identity.environment[name] = text;
  }
  for (auto& [name, value] : identity.environment) {
    if (target::is_secret_name(name) && value.rfind("[secret", 0) != 0)
      value = std::string(target::kMask);  // an image's own
  }
  ready_[&variant] = std::move(ready);
}

const Ready* Artefacts::find(const scenario::Variant& variant) const {
  const auto it = ready_.find(&variant);
  return it == ready_.end() ? nullptr : &it->second;
}

Target filled_in(const Target& target, const Ready& ready) {
  if (ready.root.empty()) return target;
  const auto fill = [&](std::string& text) {
    text = with_place(std::move(text), kPlace, ready.root.string());
  };
  const auto fill_all = [&](std::vector<std::string>& words) {
    for (std::string& word : words) fill(word);
  };
  Target out = target;
  fill_all(out.argv);
  fill(out.cwd);
  for (auto& [name, value] : out.env) fill(value);
  if (out.server) {
    fill_all(out.server->stop);
    for (scenario::ServerMember& member : out.server->members) {
      fill_all(member.argv);
      fill_all(member.args);
      fill(member.cwd);
      for (auto& [name, value] : member.env) fill(value);
    }
  }
  return out;
}

void put_on(const Ready& ready, const std::string& name, target::TargetSpec& spec) {
  if (!ready.error.empty()) throw BuildError(ready.error);
  std::size_t number = 0;
  for (target::WorkerSpec& worker : spec.workers) {
    worker.env = variables_of(ready, std::move(worker.env));
    if (!ready.container.empty()) {
      const std::string own = spec.workers.size() == 1 ? name : fmt::format("{}-{}", name, number);
      put_into_container(ready, own, spec.run_dir.string(), worker);
    } else if (!ready.bin.empty() && !worker.argv.empty() &&
               worker.argv[0].find('/') == std::string::npos) {
      std::error_code failed;
      const fs::path program = ready.bin / worker.argv[0];
      if (fs::exists(program, failed)) worker.argv[0] = program.string();
    }
    ++number;
  }
  // Ending its engine's client leaves a container alive.
  if (!ready.container.empty() && spec.stop.argv.empty()) {
    spec.stop.argv = stop_container(ready, name);
    for (std::size_t i = 1; i < spec.workers.size(); ++i)
      spec.stop.argv.push_back(fmt::format("{}-{}", name, i));
    if (spec.workers.size() > 1) spec.stop.argv[4] = name + "-0";
  }
}

}  // namespace warmgate::run
