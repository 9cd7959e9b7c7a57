#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

void capture(Session& s) {
  // Graphs do not exist on devices without them; what a graph freezes of the host does. The
  // modelled engine captures with lengths of 1. Origin: vLLM at d40c3e3c00,
  // v1/worker/gpu/cudagraph_utils.py.
  if (s.seam_is("capture.c128_branch", "recorded")) {
    Batch batch;
    batch.dummy = batch.recorded = true;
    batch.requests.push_back({0, 0, 1});
    s.step(batch, false);
  }
  s.recorder.skip("capture", "no graphs on this device", true);
}

}  // namespace warmgate::engine::phases
