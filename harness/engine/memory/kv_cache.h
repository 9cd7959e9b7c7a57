// The slab, its per-module views, block tables and slot mappings of one rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/engine/memory/block_tables.h"
#include "harness/engine/memory/device_memory.h"
#include "harness/engine/memory/kv_plan.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

/// A module's pages inside the slab: [num_blocks, rows, row] with stride(0) = block stride, u8 for
/// keys, fp32 for states.
struct BoundCache {
  Tensor view;
  std::size_t group = 0;
  bool bound() const { return view.present(); }
};

class KvCache {
 public:
  KvCache(DeviceMemory& memory, const Dims& dims, const std::vector<CacheModule>& modules,
          std::vector<CacheGroup> groups, const KvPlan& plan);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  BlockTables& tables() { return tables_; }
  const BlockTables& tables() const { return tables_; }
  const BoundCache& of(std::size_t module) const { return bound_.at(module); }
  const CacheGroup& group(std::size_t g) const { return groups_.at(g); }
  std::size_t groups() const { return groups_.size(); }
  /// Device table of a group, int32 [S, ceil(L/block)].
  const Tensor& table(std::size_t g) const { return device_tables_.at(g); }
  /// Device slot mapping of a group, int64 [B].
  const Tensor& slots(std::size_t g) const { return device_slots_.at(g); }
  /// Host slots of the current step, B long, -1 behind its tokens.
  std::span<const std::int64_t> host_slots(std::size_t g) const { return host_slots_.at(g).values; }

  /// Slots of one step: `fill(g, slots)` writes the first `tokens` of each group; everything behind
  /// is -1, whatever an earlier step left there.
  template <class Fill>
  void write_slots(std::size_t g, std::int64_t tokens, Fill&& fill) {
    Slots& s = host_slots_.at(g);
    fill(std::span(s.values.data(), static_cast<std::size_t>(tokens)));
    for (std::int64_t i = tokens; i < s.dirty; ++i) s.values[static_cast<std::size_t>(i)] = -1;
    s.dirty = tokens;
  }

 private:
  struct Slots {
    std::vector<std::int64_t> values;
    std::int64_t dirty = 0;  // values before it may differ from -1
  };
  Tensor keep(DType dtype, Shape shape, std::string_view owner);
  DeviceMemory& memory_;
  std::vector<CacheGroup> groups_;
  std::vector<Allocation> held_;
  std::vector<BoundCache> bound_;
  std::vector<Tensor> device_tables_, device_slots_;
  std::vector<Slots> host_slots_;
  BlockTables tables_;
};

}  // namespace warmgate::engine
