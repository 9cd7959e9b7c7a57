// The host integers of one step: what scheduling and dispatch decide from. No device tensor is ever
// read for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/engine/layers/dims.h"
#include "harness/engine/model.h"

namespace warmgate::engine {

struct StepHost {
  bool dummy = false;
  bool recorded = false;                  // this step's host branches are kept for all later ones
  std::int64_t tokens = 0, requests = 0;  // padding counted
  std::int64_t real_tokens = 0, real_requests = 0;  // without; padding comes last
  std::int64_t max_query_len = 0;
  std::int64_t max_seq_len = 0;               // that the host's branches are taken by
  std::int64_t shape_seq_len = 0;             // that shapes are made for, at least max_seq_len
  std::int64_t windows4 = 0, windows128 = 0;  // tokens that complete a window of 4, of 128
  std::vector<BatchRequest> batch;
  std::vector<std::int32_t> query_start;   // [requests + 1]
  std::vector<std::int32_t> seq_lens;      // [requests] computed + query
  std::vector<std::int32_t> token_to_req;  // [tokens]
  std::vector<std::int64_t> positions;     // [tokens]
  /// What the device is given: [tokens]; of a dummy step positions and ids are 0.
  /// Origin: vLLM at d40c3e3c00, v1/worker/gpu/input_batch.py InputBatch.make_dummy.
  std::vector<std::int64_t> device_positions, ids;
  std::vector<std::int32_t> swa_starts, swa_lens;  // [tokens] max(p-W+1, 0) and p - start + 1
  std::vector<std::int32_t> gather_lens;           // [requests] query + min(computed, W-1)

  /// Throws std::out_of_range naming the limit for more than B tokens, more than S requests, a
  /// position at or above L, a row outside the tables, a query below 1, a negative prefix, ids that
  /// are not one a token.
  void build(const Batch& step, const Dims& dims);
};

}  // namespace warmgate::engine
