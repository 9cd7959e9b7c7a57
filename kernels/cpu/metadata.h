// Index lists and lengths from positions, tables and slots.
// Origin: vLLM at d40c3e3c00, v1/attention/backends/mla/sparse_swa.py, models/deepseek_v4/
// sparse_mla.py, v1/attention/backends/mla/compressor_utils.py, indexer.py.
#pragma once

#include <cstdint>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cpu {

/// query_start [requests+1] i32, slots [tokens] i64 → token_to_req [tokens] i32,
/// is_valid [tokens] = slot >= 0 (0|1 bytes). tokens may exceed query_start's end (padding): such
/// tokens get request 0.
struct TokenToReq {
  std::int64_t tokens = 0, requests = 0;
  const std::int32_t* query_start = nullptr;
  const std::int64_t* slots = nullptr;
  std::int32_t* token_to_req = nullptr;
  std::uint8_t* is_valid = nullptr;
};
void token_to_req(const TokenToReq& p);

/// slots[t] = the slot of row p / ratio of the token's request where (p+1) mod ratio == 0, else -1;
/// ratio 1: of every token. Everything up to `capacity` is -1 first.
struct SlotMapping {
  std::int64_t tokens = 0, capacity = 0, ratio = 1;
  const std::int64_t* positions = nullptr;
  const std::int32_t* token_to_req = nullptr;
  BlockTable table;
  std::int64_t* slots = nullptr;
};
void slot_mapping(const SlotMapping& p);

/// Window of each token: slots of positions max(p-window+1,0)..p, ascending, then -1 up to `width`;
/// lens[t] their number. An invalid token: lens 0, indices untouched. indices [tokens,width] i32.
struct SwaIndices {
  std::int64_t tokens = 0, window = 128, width = 128;
  const std::int64_t* positions = nullptr;
  const std::int32_t* token_to_req = nullptr;
  const std::uint8_t* is_valid = nullptr;
  BlockTable table;
  std::int32_t* indices = nullptr;
  std::int32_t* lens = nullptr;
};
void swa_indices(const SwaIndices& p);

/// Non-causal draft block: every token of request b sees max(prefix-window,0)..seq_len-1, where
/// prefix = seq_len - query_len. Otherwise as SwaIndices. query_start [requests+1], seq_lens i32.
struct NoncausalSwaIndices {
  std::int64_t tokens = 0, window = 128, width = 256;
  const std::int32_t* query_start = nullptr;
  const std::int32_t* seq_lens = nullptr;
  const std::int32_t* token_to_req = nullptr;
  const std::uint8_t* is_valid = nullptr;
  BlockTable table;
  std::int32_t* indices = nullptr;
  std::int32_t* lens = nullptr;
};
void noncausal_swa_indices(const NoncausalSwaIndices& p);

/// All complete entries n = (p+1)/ratio of each token, rows [tokens,width] i32, -1 behind them.
/// Decode (table.entries given): global slots and lens[t] = n, 0 for an invalid token.
/// Prefill (table.entries nullptr): local indices 0..n-1; lens nullptr.
/// n is clamped to `width`.
struct CompressedIndices {
  std::int64_t tokens = 0, ratio = 128, width = 0;
  const std::int64_t* positions = nullptr;
  const std::int32_t* token_to_req = nullptr;
  const std::uint8_t* is_valid = nullptr;
  BlockTable table;
  std::int32_t* indices = nullptr;
  std::int32_t* lens = nullptr;
};
void compressed_indices(const CompressedIndices& p);

/// lens[t] = (p+1)/ratio: entries that each token sees (the indexer's context lengths).
struct VisibleEntries {
  std::int64_t tokens = 0, ratio = 4;
  const std::int64_t* positions = nullptr;
  std::int32_t* lens = nullptr;
};
void visible_entries(const VisibleEntries& p);

/// expanded[t,:] = the first `width` entries of table row token_to_req[t]: [tokens,width] i32.
struct ExpandTable {
  std::int64_t tokens = 0, width = 0;
  const std::int32_t* token_to_req = nullptr;
  BlockTable table;
  std::int32_t* expanded = nullptr;
};
void expand_table(const ExpandTable& p);

}  // namespace warmgate::kernels::cpu
