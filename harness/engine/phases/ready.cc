#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

void ready(Session& s) {
  s.barrier();
  s.recorder.send(trace::Line("ready").str("clock", "process"));
}

}  // namespace warmgate::engine::phases
