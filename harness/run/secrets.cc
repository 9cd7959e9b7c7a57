#include "harness/run/secrets.h"

#include "harness/target/mask.h"
#include "harness/trace/secrets.h"

extern char** environ;

namespace warmgate::run {
namespace {

using Found = std::vector<std::string>;

void of_command(const std::vector<std::string>& argv, const std::map<std::string, std::string>& env,
                Found& out) {
  trace::find_argument_secrets(argv, out);
  for (const auto& [name, value] : env) trace::find_named_secret(name, value, out);
}

void of_target(const scenario::Target& target, Found& out) {
  of_command(target.argv, target.env, out);
  if (!target.server) return;
  const scenario::ServerTarget& server = *target.server;
  trace::find_argument_secrets({server.model}, out);
  trace::find_argument_secrets(server.stop, out);
  for (const scenario::ServerMember& member : server.members) {
    of_command(member.argv, member.env, out);
    trace::find_argument_secrets(member.args, out);
  }
}

void of_wheel(const scenario::WheelSource& wheel, Found& out) {
  trace::find_argument_secrets({wheel.path, wheel.url, wheel.from}, out);
  trace::find_argument_secrets(wheel.pip, out);  // --index-url https://user:password@…
}

void of_artefact(const scenario::Artefact& artefact, Found& out) {
  trace::find_argument_secrets(artefact.command, out);
  trace::find_argument_secrets(artefact.image.run, out);  // -e HF_TOKEN=…
  trace::find_argument_secrets({artefact.worktree.repo}, out);
  of_wheel(artefact.wheel, out);
  of_wheel(artefact.worktree.wheel, out);
}

}  // namespace

Found known_secrets(const std::vector<const scenario::Scenario*>& scenarios,
                    const scenario::LoadOptions& options) {
  Found out = target::collect_secrets(::environ);
  trace::find_argument_secrets(options.overlays, out);
  for (const scenario::Scenario* scenario : scenarios) {
    trace::find_argument_secrets({scenario->path.string(), scenario->about}, out);
    for (const scenario::Variant& variant : scenario->variants) {
      of_target(variant.target, out);
      of_artefact(variant.artefact, out);
    }
  }
  return trace::spellings(std::move(out));
}

}  // namespace warmgate::run
