// For tests on a device that executes: a model as small as the kernels take, requests with ids, and
// what each token left behind, by request and position.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include "harness/engine/ops/compressor.h"
#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/observer.h"
#include "harness/engine/ops/query_key.h"
#include "harness/engine/testing.h"

namespace warmgate::engine::testing {

/// 64 of the compressed entries are chosen, so that contexts from 260 tokens on are scored.
inline scenario::Resolved executed(std::vector<std::int64_t> ratios) {
  scenario::Resolved r = small(std::move(ratios), 1024, 320, 8);
  auto& m = r.model;
  m.hidden_size = 128;
  m.num_attention_heads = 2;
  m.q_lora_rank = 128;
  m.o_groups = 1;
  m.o_lora_rank = 64;
  m.index_n_heads = 4;
  m.index_topk = 64;
  m.vocab_size = 256;
  m.n_routed_experts = 2;
  m.num_experts_per_tok = 1;
  m.moe_intermediate_size = 64;
  m.num_hash_layers = 0;
  m.hc_mult = 2;
  m.original_max_position_embeddings = 256;
  r.device = executing_device();
  r.limits.device_memory_bytes = 4'000'000'000;
  r.limits.kv_pool_bytes = 80'000'000;
  return r;
}

using Bytes = std::vector<std::uint8_t>;
inline Bytes bytes_at(std::uint64_t address, std::int64_t count) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(address));
  return {p, p + count};
}
/// Row `slot` of cache pages: value bytes, then scale bytes; states have no scales.
inline Bytes cache_row(const Tensor& cache, std::int64_t slot, std::int64_t scale_bytes) {
  const std::int64_t rows = cache.dim(1), unit = bits_of(cache.dtype) / 8;
  const std::int64_t values = cache.last() * unit - scale_bytes;
  const std::uint64_t page =
      cache.address + static_cast<std::uint64_t>(slot / rows * cache.strides[0] * unit);
  const auto row = static_cast<std::uint64_t>(slot % rows);
  Bytes out = bytes_at(page + row * static_cast<std::uint64_t>(values), values);
  const Bytes scales = bytes_at(page + static_cast<std::uint64_t>(rows * values) +
                                    row * static_cast<std::uint64_t>(scale_bytes),
                                scale_bytes);
  out.insert(out.end(), scales.begin(), scales.end());
  return out;
}

/// Looks at nothing: for observers that look at a few ops only.
class Watcher : public Observer {
 public:
  void after(const LayerRef&, const ops::Embed&) override {}
  void after(const LayerRef&, const ops::FusedQkvNorm&) override {}
  void after(const LayerRef&, const ops::Gemm&) override {}
  void after(const LayerRef&, const ops::GroupedProjection&) override {}
  void after(const LayerRef&, const ops::HyperConnectionPost&) override {}
  void after(const LayerRef&, const ops::HyperConnectionPre&) override {}
  void after(const LayerRef&, const ops::IndexerQuant&) override {}
  void after(const LayerRef&, const ops::InverseRopeQuant&) override {}
  void after(const LayerRef&, const ops::Moe&) override {}
  void after(const LayerRef&, const ops::RmsNorm&) override {}
  void after(const LayerRef&, const ops::Sample&) override {}
  void after(const LayerRef&, const ops::CompressWindow&) override {}
  void after(const LayerRef&, const ops::QNormRopeInsert&) override {}
  void after(const LayerRef&, const ops::SavePartialStates&) override {}
  void after(const LayerRef&, const ops::SelectRows&) override {}
};

/// What was written, by (what and where, request, position): final hidden states and cache rows.
class Traces final : public Watcher {
 public:
  using Watcher::after;
  using Where = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<Where, Bytes> written;
  /// Request and position of each token of the step under way.
  std::vector<std::pair<std::int64_t, std::int64_t>> tokens;

  void after(const LayerRef& layer, const ops::SelectRows& op) override {
    if (layer.role != "target") return;
    const std::int64_t row = op.hidden.last() * 2;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      put("hidden", t, bytes_at(op.hidden.address + t * static_cast<std::uint64_t>(row), row));
    }
  }
  void after(const LayerRef& layer, const ops::QNormRopeInsert& op) override {
    rows(layer, "window key", op.cache, op.slots, 8);
  }
  void after(const LayerRef& layer, const ops::SavePartialStates& op) override {
    rows(layer, op.state.last() < 2048 && layer.kind == "c4a" ? "indexer state" : "state", op.state,
         op.slots, 0);
  }
  void after(const LayerRef& layer, const ops::CompressWindow& op) override {
    const bool key = op.width == 512;
    rows(layer, key ? "entry" : "indexer entry", op.cache, op.slots, key ? 8 : 4);
  }

 private:
  void put(const std::string& what, std::size_t token, Bytes bytes) {
    written[{what, tokens[token].first, tokens[token].second}] = std::move(bytes);
  }
  void rows(const LayerRef& layer, const char* what, const Tensor& cache, const Tensor& slots,
            std::int64_t scale_bytes) {
    const auto* at =
        reinterpret_cast<const std::int64_t*>(static_cast<std::uintptr_t>(slots.address));
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      if (at[t] < 0) continue;
      put(what + (" of layer " + std::to_string(layer.id)), t,
          cache_row(cache, at[t], scale_bytes));
    }
  }
};

/// Requests served step by step, as the scheduler does, and traced.
class Served {
 public:
  explicit Served(const scenario::Resolved& config) : rank(config) {
    rank.start();
    rank.context.observer = &traces;
    rank.recorder.phase_begin("serve");
  }
  ~Served() { rank.recorder.phase_end("ok"); }

  /// Tokens of request row `r`: the same for the same key, whatever the row.
  void open(std::int64_t row, std::uint64_t key, std::int64_t count) {
    std::mt19937_64 random(key);
    ids_[row].clear();
    computed_[row] = 0;
    keys_[row] = static_cast<std::int64_t>(key);
    for (std::int64_t i = 0; i < count; ++i) {
      ids_[row].push_back(static_cast<std::int64_t>(random() % 256));
    }
  }
  std::int64_t left(std::int64_t row) const {
    return static_cast<std::int64_t>(ids_.at(row).size()) - computed_.at(row);
  }
  /// One step of (row, tokens), decodes first. `poison`: what all scratch memory is filled with.
  void step(const std::vector<std::pair<std::int64_t, std::int64_t>>& parts, int poison = -1) {
    Batch batch;
    traces.tokens.clear();
    for (const auto& [row, count] : parts) {
      const std::int64_t from = computed_[row];
      ASSERT_TRUE(rank.model().grow_request(row, from + count));
      const auto begin = ids_[row].begin() + from;
      batch.requests.push_back({row, from, count, {begin, begin + count}});
      for (std::int64_t p = from; p < from + count; ++p) traces.tokens.emplace_back(keys_[row], p);
    }
    if (poison >= 0) {
      std::memset(reinterpret_cast<void*>(static_cast<std::uintptr_t>(rank.workspace.base(0))),
                  poison, static_cast<std::size_t>(rank.workspace.capacity(0)));
    }
    rank.model().step(batch, false);
    for (const auto& [row, count] : parts) {
      computed_[row] += count;
      rank.model().free_window_blocks(row, computed_[row]);
    }
  }
  /// All of a request in pieces of `chunk` tokens.
  void all(std::int64_t row, std::int64_t chunk, int poison = -1) {
    while (left(row) > 0) step({{row, std::min(chunk, left(row))}}, poison);
  }

  Traces traces;
  Rank rank;

 private:
  std::map<std::int64_t, std::vector<std::int64_t>> ids_;
  std::map<std::int64_t, std::int64_t> computed_, keys_;
};

/// What `seen` has of request `key` is what `wanted` has, bit by bit; nothing is missing.
inline void expect_same(const Traces& wanted, const Traces& seen, std::uint64_t key,
                        const std::string& how) {
  std::size_t compared = 0;
  for (const auto& [where, bytes] : wanted.written) {
    const auto& [what, request, position] = where;
    if (request != static_cast<std::int64_t>(key)) continue;
    const auto it = seen.written.find(where);
    ASSERT_NE(it, seen.written.end()) << how << ": no " << what << " at position " << position;
    ASSERT_EQ(it->second, bytes) << how << ": " << what << " at position " << position;
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace warmgate::engine::testing
