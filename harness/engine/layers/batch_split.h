// Which requests of a step count as decode. Origin: vLLM at d40c3e3c00,
// v1/attention/backends/utils.py split_decodes_and_prefills.
#pragma once

#include <cstdint>
#include <span>

#include "harness/engine/model.h"

namespace warmgate::engine {

struct Split {
  std::int64_t decodes = 0, decode_tokens = 0;
  std::int64_t prefills = 0, prefill_tokens = 0;
};

/// Requests in order, decode first: those before the first whose query is longer than `threshold`
/// (with `uniform`: whose query differs from the first request's) are decodes.
Split split_batch(std::span<const BatchRequest> requests, std::int64_t threshold, bool uniform);

}  // namespace warmgate::engine
