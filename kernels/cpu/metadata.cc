#include "kernels/cpu/metadata.h"

#include <algorithm>

namespace warmgate::kernels::cpu {

void token_to_req(const TokenToReq& p) {
  std::fill_n(p.token_to_req, p.tokens, 0);
  for (std::int64_t b = 0; b < p.requests; ++b) {
    const std::int64_t end = std::min<std::int64_t>(p.query_start[b + 1], p.tokens);
    for (std::int64_t t = p.query_start[b]; t < end; ++t) {
      p.token_to_req[t] = static_cast<std::int32_t>(b);
    }
  }
  for (std::int64_t t = 0; t < p.tokens; ++t) p.is_valid[t] = p.slots[t] >= 0 ? 1 : 0;
}

void slot_mapping(const SlotMapping& p) {
  std::fill_n(p.slots, std::max(p.capacity, p.tokens), -1);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    if ((p.positions[t] + 1) % p.ratio != 0) continue;
    p.slots[t] = p.table.slot(p.token_to_req[t], p.positions[t] / p.ratio);
  }
}

namespace {

// Slots of positions begin..end-1 of a request, then -1.
std::int32_t list_slots(const BlockTable& table, std::int64_t request, std::int64_t begin,
                        std::int64_t end, std::int64_t width, std::int32_t* out) {
  const std::int64_t count = std::clamp<std::int64_t>(end - begin, 0, width);
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::int32_t>(table.slot(request, begin + i));
  }
  std::fill(out + count, out + width, -1);
  return static_cast<std::int32_t>(count);
}

}  // namespace

void swa_indices(const SwaIndices& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    p.lens[t] = 0;
    if (p.is_valid[t] == 0) continue;
    const std::int64_t position = p.positions[t];
    const std::int64_t start = std::max<std::int64_t>(position - p.window + 1, 0);
    p.lens[t] = list_slots(p.table, p.token_to_req[t], start, position + 1, p.width,
                           p.indices + t * p.width);
  }
}

void noncausal_swa_indices(const NoncausalSwaIndices& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    p.lens[t] = 0;
    if (p.is_valid[t] == 0) continue;
    const std::int32_t b = p.token_to_req[t];
    const std::int64_t prefix = p.seq_lens[b] - (p.query_start[b + 1] - p.query_start[b]);
    const std::int64_t start = std::max<std::int64_t>(prefix - p.window, 0);
    p.lens[t] = list_slots(p.table, b, start, p.seq_lens[b], p.width, p.indices + t * p.width);
  }
}

void compressed_indices(const CompressedIndices& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t entries = std::min((p.positions[t] + 1) / p.ratio, p.width);
    std::int32_t* out = p.indices + t * p.width;
    if (p.table.entries == nullptr) {
      for (std::int64_t j = 0; j < entries; ++j) out[j] = static_cast<std::int32_t>(j);
      std::fill(out + entries, out + p.width, -1);
      continue;
    }
    const bool valid = p.is_valid[t] != 0;
    p.lens[t] =
        list_slots(p.table, valid ? p.token_to_req[t] : 0, 0, valid ? entries : 0, p.width, out);
  }
}

void visible_entries(const VisibleEntries& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    p.lens[t] = static_cast<std::int32_t>((p.positions[t] + 1) / p.ratio);
  }
}

void expand_table(const ExpandTable& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    std::copy_n(p.table.entries + p.token_to_req[t] * p.table.stride, p.width,
                p.expanded + t * p.width);
  }
}

}  // namespace warmgate::kernels::cpu
