#include "harness/run/prepare.h"

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "harness/run/inject.h"
#include "harness/run/server.h"
#include "harness/run/spans.h"
#include "harness/target/gpu_memory.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

// The names that a person wrote may hold anything; a folder's may not.
std::string label_of(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : '-';
    if (out.size() == 40) break;
  }
  return out;
}

void set_deadlines(const scenario::Target& target, const PrepareOptions& options,
                   target::Deadlines& deadlines) {
  deadlines.scale = options.deadline_scale;
  // Who allows ten minutes for a run means its phases too, unless the scenario knows better.
  if (options.timeout_s) deadlines.default_phase_s = *options.timeout_s;
  for (const auto& [phase, seconds] : target.deadline_s) {
    if (phase.empty()) {
      deadlines.default_phase_s = seconds;
    } else {
      deadlines.phase_s[phase] = seconds;
    }
  }
  if (target.silence_s) deadlines.silence_s = *target.silence_s;
  deadlines.total_s = options.timeout_s;
  if (options.grace_s) deadlines.shutdown_grace_s = *options.grace_s;
  if (options.settle_s) deadlines.settle_s = *options.settle_s;
}

// What our engine took of a GPU's memory has to come back, also where it was killed.
void watch_gpu_memory(const scenario::Variant& variant, const PrepareOptions& options,
                      Prepared& prepared) {
  constexpr double kSettle_s = 30;  // a driver takes its time
  std::vector<std::string> gpus = gpus_of(variant);
  if (gpus.empty()) return;
  prepared.companion = target::make_gpu_memory_companion(
      target::GpuMemoryCheck(std::move(gpus)), options.settle_s.value_or(kSettle_s), nullptr);
  prepared.spec.companion = prepared.companion.get();
}

std::vector<std::string> without(std::vector<std::string> names, const char* name) {
  std::erase(names, name);
  return names;
}

}  // namespace

Prepared prepare(const scenario::Scenario& scenario, const scenario::Variant& asked,
                 const PrepareOptions& given) {
  PrepareOptions options = given;
  const Ready* artefact = options.artefacts != nullptr ? options.artefacts->find(asked) : nullptr;
  if (artefact != nullptr && !artefact->error.empty()) throw std::runtime_error(artefact->error);
  std::optional<scenario::Variant> placed;  // its words with the artefact's folder filled in
  if (artefact != nullptr) {
    placed = asked;
    placed->target = filled_in(asked.target, *artefact);
    options.artefact_hash = artefact->identity.hash;
  }
  const scenario::Variant& variant = placed ? *placed : asked;
  Prepared prepared{RunDir(label_of(scenario.name + "-" + variant.name)), {}, {}, {}, {}, {}, {}};
  target::TargetSpec& spec = prepared.spec;
  spec.name = scenario.name + " variant " + variant.name;
  spec.phases = variant.target.phases;
  spec.memory_bytes = variant.target.memory_bytes;
  spec.run_dir = prepared.dir.path();
  spec.secrets = options.secrets;
  if (variant.target.server) {
    server_deadlines(preset_of(*variant.target.server, options.fixtures), spec.deadlines);
  }
  set_deadlines(variant.target, options, spec.deadlines);
  switch (variant.target.kind) {
    case scenario::Target::Kind::kNative:
      prepare_native(variant, options, prepared);
      watch_gpu_memory(variant, options, prepared);
      break;
    case scenario::Target::Kind::kCommand:
      prepare_command(scenario, variant, prepared);
      break;
    case scenario::Target::Kind::kServer:
      prepare_server(scenario, variant, options, prepared);
      break;
  }
  // A container's command names the variables that go in, and has none of our Python files; an
  // environment has paths of its own that ours go in front of.
  const bool boxed = artefact != nullptr && !artefact->container.empty();
  if (boxed) inject(without(options.probes, "python"), spec);
  if (asked_for(options.probes, "spans")) {
    prepared.inner = std::move(prepared.companion);
    prepared.companion = receive_spans(
        variant.target.server ? preset_of(*variant.target.server, options.fixtures).spans
                              : target::SpanFacts{},
        spec);
  }
  if (artefact != nullptr) {
    const bool command = variant.target.kind == scenario::Target::Kind::kCommand;
    // A path in a container is the container's.
    if (command && !artefact->container.empty()) spec.workers.front().argv = variant.target.argv;
    put_on(*artefact, prepared.dir.path().filename().string(), spec);
  }
  if (!boxed) inject(options.probes, spec);
  if (variant.target.server) check_programs(spec);
  return prepared;
}

fs::path find_engine(const fs::path& wish) {
  if (!wish.empty()) return fs::absolute(wish);
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = self.parent_path() / "warmgate-engine";
  if (!self.empty() && fs::exists(beside, ignored)) return beside;
  if (const char* bin = std::getenv("WARMGATE_BIN_DIR")) {
    const fs::path built = fs::path(bin) / "warmgate-engine";
    if (fs::exists(built, ignored)) return fs::absolute(built);
  }
  return {};
}

// One page for all ranks, one for each, and two pieces of payload for each:
// harness/engine/parallel/shared_memory.h, which this folder may not include. The engine refuses
// memory of another size, so a difference cannot go unseen.
std::int64_t collectives_bytes(int world) {
  constexpr std::int64_t kPage = 4096, kPiece = 256 << 10;
  return kPage * (1 + world) + 2 * kPiece * world;
}

std::string_view to_string(jit::Backend backend) {
  switch (backend) {
    case jit::Backend::kAuto:
      return "auto";
    case jit::Backend::kNvrtc:
      return "nvrtc";
    case jit::Backend::kHost:
      return "host";
  }
  return "auto";
}

}  // namespace warmgate::run
