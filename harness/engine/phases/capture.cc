#include <fmt/format.h>

#include <algorithm>

#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

namespace {

/// 1, 2, 4, then every 8th up to 248, then every 16th, none above `most`; largest first.
/// Origin: vLLM at d40c3e3c00, config/vllm.py cudagraph_capture_sizes.
std::vector<std::int64_t> capture_sizes(std::int64_t most) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t size) {
    if (size <= most) sizes.push_back(size);
  };
  for (const std::int64_t size : {1, 2, 4}) add(size);
  for (std::int64_t size = 8; size < 256; size += 8) add(size);
  for (std::int64_t size = 256; size <= most; size += 16) add(size);
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

// Graphs do not exist on devices without them; what a graph freezes of the host does. The modelled
// engine captures with lengths of 1. Origin: vLLM at d40c3e3c00, v1/worker/gpu/cudagraph_utils.py.
void record_branches(Session& s) {
  if (!s.seam_is("capture.c128_branch", "recorded")) return;
  Batch batch;
  batch.dummy = batch.recorded = true;
  batch.requests.push_back({0, 0, 1});
  s.step(batch, false);
}

}  // namespace

void capture(Session& s) {
  if (!s.model->has_graphs()) {
    record_branches(s);
    s.recorder.skip("capture", "no graphs on this device", true);
    return;
  }
  if (s.seam_is("capture.graphs", "none")) {
    s.recorder.skip("capture", "capture.graphs is none", true);
    return;
  }
  const auto& limits = s.config.limits;
  constexpr std::int64_t kMostRows = 512;
  const std::int64_t most =
      std::min({limits.max_num_seqs, limits.max_num_batched_tokens, kMostRows});
  const bool piecewise = s.seam_is("capture.graphs", "piecewise");
  for (const std::int64_t size : capture_sizes(most)) {
    s.model->capture_graph(size, piecewise);
    s.recorder.heartbeat();
  }
}

}  // namespace warmgate::engine::phases
