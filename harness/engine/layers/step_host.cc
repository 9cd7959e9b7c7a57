#include "harness/engine/layers/step_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace warmgate::engine {

namespace {

void check(const BatchRequest& r, const Dims& d) {
  if (r.request < 0 || r.request >= d.max_seqs) {
    throw std::out_of_range(
        fmt::format("request row {} outside 0..{} (max_num_seqs)", r.request, d.max_seqs - 1));
  }
  if (r.query < 1 || r.computed < 0 || r.query > d.max_model_len - r.computed) {
    throw std::out_of_range(fmt::format(
        "request row {}: {} computed and {} new tokens; 1 new at least, {} in all (max_model_len)",
        r.request, r.computed, r.query, d.max_model_len));
  }
  if (!r.ids.empty() && static_cast<std::int64_t>(r.ids.size()) != r.query) {
    throw std::out_of_range(
        fmt::format("request row {}: {} ids for {} tokens", r.request, r.ids.size(), r.query));
  }
}

}  // namespace

void StepHost::build(const Batch& step, const Dims& d) {
  batch.assign(step.requests.begin(), step.requests.end());
  dummy = step.dummy;
  recorded = step.recorded;
  real_requests = static_cast<std::int64_t>(batch.size());
  for (std::int64_t t = step.tokens(); t < step.pad_to; ++t) batch.push_back({kPadding, 0, 1});
  requests = static_cast<std::int64_t>(batch.size());
  tokens = max_query_len = windows4 = windows128 = 0;
  max_seq_len = step.branch_length;
  if (requests > d.max_seqs) {
    throw std::out_of_range(
        fmt::format("{} requests in a step; max_num_seqs is {}", requests, d.max_seqs));
  }
  query_start.assign(1, 0);
  seq_lens.clear();
  gather_lens.clear();
  for (const BatchRequest& r : batch) {
    if (r.request != kPadding) check(r, d);
    tokens += r.query;
    if (tokens > d.max_tokens) {
      throw std::out_of_range(
          fmt::format("more than {} tokens in a step (max_num_batched_tokens)", d.max_tokens));
    }
    const std::int64_t seq = r.computed + r.query;
    max_query_len = std::max(max_query_len, r.query);
    max_seq_len = std::max(max_seq_len, seq);
    windows4 += seq / 4 - r.computed / 4;
    windows128 += seq / 128 - r.computed / 128;
    query_start.push_back(static_cast<std::int32_t>(tokens));
    seq_lens.push_back(static_cast<std::int32_t>(seq));
    gather_lens.push_back(static_cast<std::int32_t>(r.query + std::min(r.computed, d.window - 1)));
  }
  real_tokens = tokens - (requests - real_requests);
  shape_seq_len = std::max(max_seq_len, step.shape_length);
  const auto count = static_cast<std::size_t>(tokens);
  token_to_req.resize(count);
  positions.resize(count);
  device_positions.assign(count, 0);
  ids.assign(count, 0);
  swa_starts.resize(count);
  swa_lens.resize(count);
  std::size_t t = 0;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    const std::int64_t end = batch[r].computed + batch[r].query;
    if (!dummy) {
      std::copy(batch[r].ids.begin(), batch[r].ids.end(),
                ids.begin() + static_cast<std::ptrdiff_t>(t));
    }
    for (std::int64_t p = batch[r].computed; p < end; ++p, ++t) {
      const std::int64_t start = std::max<std::int64_t>(p - d.window + 1, 0);
      token_to_req[t] = static_cast<std::int32_t>(r);
      positions[t] = p;
      if (!dummy) device_positions[t] = p;
      swa_starts[t] = static_cast<std::int32_t>(start);
      swa_lens[t] = static_cast<std::int32_t>(p - start + 1);
    }
  }
}

}  // namespace warmgate::engine
