#include "harness/engine/phases/engine.h"

#include "harness/engine/phases/fault.h"
#include "harness/engine/phases/phases.h"

namespace warmgate::engine {

namespace {

struct Phase {
  const char* name;
  void (*run)(Session&);
};

constexpr Phase kPhases[] = {{"bootstrap", phases::bootstrap}, {"load", phases::load},
                             {"profile", phases::profile},     {"kv", phases::kv},
                             {"warmup", phases::warmup},       {"capture", phases::capture},
                             {"ready", phases::ready},         {"serve", phases::serve},
                             {"shutdown", phases::shutdown}};

/// What the device's own counter says, beside the engine's sums: what it cannot account for belongs
/// to the runtime, to graphs, to libraries, or to another process.
void tell_device(const Session& s, trace::Line& figures) {
  if (!s.memory) return;
  try {
    const auto free = device_named(s.config.device).free_bytes();
    if (!free) return;
    figures.num("device_free_bytes", *free).num("stand_in_bytes", s.memory->stand_in_bytes());
    if (s.device_free_at_start > 0) {
      const std::int64_t own = s.memory->backed_bytes();
      figures.num("non_engine_bytes", s.device_free_at_start - *free - own);
    }
  } catch (const std::exception&) {
    // A device that failed says nothing any more.
  }
}

void end_phase(Session& s, const char* status) {
  s.steps.end_phase();
  if (s.model) s.model->end_phase();
  if (s.clock) s.clock->send(s.recorder);
  trace::Line figures("phase_end");
  if (s.memory) s.memory->end_phase(figures);
  tell_device(s, figures);
  if (s.all_blocks > 0) {
    // Once the model is gone, all its blocks came back: shutdown looked.
    figures.num("free_blocks", s.model ? s.model->free_blocks() : s.all_blocks);
    figures.num("total_blocks", s.all_blocks);
  }
  s.recorder.phase_end(status, &figures);
}

/// "AssertionError in profile: message", for the other ranks.
std::string summary(const std::exception& error, const char* phase) {
  return std::string("in ") + phase + ": " + error.what();
}

void report(Session& s, const std::exception& error, const char* phase) {
  const auto* collective = dynamic_cast<const CollectiveError*>(&error);
  // All ranks entered, though not the same: the order of calls is part of the proof.
  if (collective != nullptr && collective->kind == "mismatch") {
    const CollectiveCall& call = collective->call;
    s.recorder.collective(call.communicator, call.kind, call.bytes, call.seq);
  }
  s.recorder.send(fault_line(error, phase));
  s.collectives.abandon(summary(error, phase));
  end_phase(s, "failed");
}

bool run_phase(Session& s, const Phase& phase) {
  s.recorder.phase_begin(phase.name);
  if (s.memory) s.memory->begin_phase();
  try {
    phase.run(s);
    end_phase(s, "ok");
    return true;
  } catch (const std::exception& error) {
    report(s, error, phase.name);
  } catch (...) {
    report(s, std::runtime_error("an exception that is no std::exception"), phase.name);
  }
  return false;
}

}  // namespace

const std::vector<std::string>& emitted_kinds() {
  static const std::vector<std::string> kinds = {
      "hello",   "bye",      "setup_error",    "phase_begin", "phase_end", "heartbeat",
      "layer",   "requires", "alloc",          "free",        "workspace", "compile",
      "launch",  "step",     "collective",     "kv",          "ready",     "request",
      "counter", "skip",     "capture",        "replay",      "stage",     "asked",
      "domain",  "fault",    "workspace_plan", "check",       "state",     "limits",
      "poisoned"};
  return kinds;
}

bool run_engine(const scenario::Resolved& config, trace::EventWriter& writer,
                Collectives& collectives, jit::Compiler& compiler, void (*entered)(const char*)) {
  Session session(config, writer, collectives, compiler);
  collectives.on_wait([&session] { session.recorder.heartbeat(); });
  bool ok = true;
  for (const Phase& phase : kPhases) {
    if (entered != nullptr) entered(phase.name);
    ok = run_phase(session, phase);
    if (!ok) break;
  }
  collectives.on_wait({});
  if (ok) writer.bye();
  return ok;
}

}  // namespace warmgate::engine
