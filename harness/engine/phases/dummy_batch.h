// The batch of a dummy step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "harness/engine/model.h"

namespace warmgate::engine {

/// `tokens` over min(tokens, requests) requests as evenly as possible, shorter ones first so that
/// decodes precede prefills, none longer than `length`. All limits at least 1.
/// Origin: vLLM at d40c3e3c00, v1/worker/gpu/model_runner.py _dummy_run.
inline Batch even_batch(std::int64_t tokens, std::int64_t requests, std::int64_t length) {
  Batch batch;
  batch.dummy = true;
  const std::int64_t count = std::min(tokens, requests);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t query = tokens / count + (i >= count - tokens % count ? 1 : 0);
    batch.requests.push_back({i, 0, std::min(query, length)});
  }
  return batch;
}

}  // namespace warmgate::engine
