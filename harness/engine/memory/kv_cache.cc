#include "harness/engine/memory/kv_cache.h"

namespace warmgate::engine {

namespace {

Tensor module_view(const CacheSpec& spec, const KvPlan& plan, std::uint64_t address) {
  const bool state = spec.cls == CacheClass::kC4State || spec.cls == CacheClass::kC128State;
  const std::int64_t element = state ? 4 : 1;
  Tensor view = make_tensor(state ? DType::kFp32 : DType::kU8,
                            {plan.num_blocks, spec.rows, spec.row_bytes / element}, address);
  view.strides[0] = plan.block_stride / element;
  view.bytes = (plan.num_blocks - 1) * plan.block_stride + spec.page_bytes;
  return view;
}

}  // namespace

KvCache::KvCache(DeviceMemory& memory, const Dims& dims, const std::vector<CacheModule>& modules,
                 std::vector<CacheGroup> groups, const KvPlan& plan)
    : memory_(memory),
      groups_(std::move(groups)),
      bound_(modules.size()),
      tables_(groups_, plan.num_blocks, dims.max_seqs, dims.max_model_len) {
  const Allocation slab = memory_.alloc("kv_cache", plan.num_blocks * plan.block_stride,
                                        "kv_cache.slab", Lifetime::kPersistent, Fresh::kZero);
  held_.push_back(slab);
  host_slots_.resize(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const CacheGroup::Member& member : groups_[g].members) {
      bound_[member.module] = {
          module_view(modules[member.module].spec, plan,
                      slab.address + static_cast<std::uint64_t>(member.offset)),
          g};
    }
    device_tables_.push_back(keep(DType::kI32, {dims.max_seqs, tables_.columns(g)}, "block_table"));
    device_slots_.push_back(keep(DType::kI64, {dims.max_tokens}, "slot_mapping"));
    host_slots_[g].values.assign(static_cast<std::size_t>(dims.max_tokens), -1);
  }
}

KvCache::~KvCache() {
  for (const Allocation& a : held_) memory_.free(a);
}

Tensor KvCache::keep(DType dtype, Shape shape, std::string_view owner) {
  Tensor t = make_tensor(dtype, shape);
  held_.push_back(memory_.alloc("metadata", t.bytes, owner, Lifetime::kPersistent));
  t.address = held_.back().address;
  return t;
}

}  // namespace warmgate::engine
