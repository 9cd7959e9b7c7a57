#include "harness/engine/memory/device_memory.h"

#include <algorithm>

#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

std::string_view to_string(Lifetime lifetime) {
  return lifetime == Lifetime::kPersistent ? "persistent" : "transient";
}

DeviceMemory::DeviceMemory(std::int64_t total_bytes, Recorder& recorder, const Device& device)
    : total_(total_bytes), recorder_(recorder) {
  if (total_bytes <= 0) {
    throw std::invalid_argument("device memory of " + std::to_string(total_bytes) + " bytes");
  }
  backing_ = device.make_backing(total_bytes);
}

DeviceMemory::Site DeviceMemory::site(std::string_view pool, std::string_view owner,
                                      Lifetime lifetime) {
  std::string name;
  name.reserve(pool.size() + owner.size() + 2);
  name.append(pool).append(1, '\0').append(owner).append(
      1, lifetime == Lifetime::kPersistent ? 'p' : 't');
  const auto [it, fresh] = by_name_.try_emplace(std::move(name), static_cast<Site>(sites_.size()));
  if (fresh) {
    const auto found =
        std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.name == pool; });
    const auto index = static_cast<std::size_t>(found - pools_.begin());
    if (found == pools_.end()) pools_.push_back({std::string(pool), {}});
    SiteState state;
    state.pool = pool;
    state.owner = owner;
    state.lifetime = lifetime;
    state.pool_index = index;
    sites_.push_back(std::move(state));
  }
  return it->second;
}

DeviceMemory::Allocation DeviceMemory::alloc(Site site, std::int64_t bytes, Fresh fresh) {
  SiteState& state = sites_.at(static_cast<std::size_t>(site));
  if (bytes < 0) {
    throw std::invalid_argument(state.owner + ": allocation of " + std::to_string(bytes) +
                                " bytes");
  }
  follow_phase();
  // Above the total nothing is rounded, so that a size near the integer's end cannot wrap.
  const std::int64_t rounded = bytes > total_ ? bytes : round_up(bytes, kRounding);
  if (rounded > free_bytes()) out_of_memory(state, rounded);
  const bool persistent = state.lifetime == Lifetime::kPersistent;
  (persistent ? persistent_ : transient_) += rounded;
  peak_ = std::max(peak_, live());
  transient_peak_ = std::max(transient_peak_, transient_);
  PoolUse& use = pools_[state.pool_index].use;
  use.live += rounded;
  use.peak = std::max(use.peak, use.live);
  state.live += rounded;
  state.peak = std::max(state.peak, state.live);
  ++state.count;
  if (persistent) {
    const auto it = std::find_if(state.sizes.begin(), state.sizes.end(),
                                 [&](const SizeCount& s) { return s.bytes == rounded; });
    if (it != state.sizes.end()) {
      ++it->count;
    } else {
      state.sizes.push_back({rounded, 1});
      tell_alloc(state, rounded, 1, false);
    }
  } else if (state.count == 1) {
    tell_alloc(state, rounded, 1, false);
  }
  if (persistent && fresh == Fresh::kStandIn) stand_in_ += rounded;
  scratch_peak_ = std::max(scratch_peak_, transient_);
  return {persistent ? backing_->take(rounded, fresh) : backing_->push(rounded), rounded, site};
}

DeviceMemory::Allocation DeviceMemory::alloc(std::string_view pool, std::int64_t bytes,
                                             std::string_view owner, Lifetime lifetime,
                                             Fresh fresh) {
  return alloc(site(pool, owner, lifetime), bytes, fresh);
}

void DeviceMemory::free(const Allocation& allocation) {
  if (!allocation.held()) return;
  follow_phase();
  SiteState& state = sites_.at(static_cast<std::size_t>(allocation.site));
  release(state, allocation.bytes);
  if (state.lifetime == Lifetime::kPersistent) {
    backing_->give_back(allocation.address, allocation.bytes);
  } else {
    backing_->pop(allocation.address, allocation.bytes);
  }
  // Transient memory comes and goes by definition; only a lasting one that goes is news.
  if (state.lifetime == Lifetime::kPersistent && !state.freed_said) {
    state.freed_said = true;
    trace::Line line("free");
    line.str("pool", state.pool).num("bytes", allocation.bytes).str("owner", state.owner);
    line.str("lifetime", to_string(state.lifetime)).str("phase", recorder_.phase());
    recorder_.once(line);
  }
}

void DeviceMemory::leave(const Scope& scope, Site site, std::int64_t rounded_bytes) {
  check_innermost(scope);
  --depth_;
  release(sites_.at(static_cast<std::size_t>(site)), rounded_bytes);
  backing_->pop_to(scope.mark);
}

void DeviceMemory::not_innermost() {
  throw std::logic_error("transient memory: a scope inside this one is still open");
}

void DeviceMemory::release(SiteState& state, std::int64_t rounded_bytes) {
  if (rounded_bytes > state.live) {
    throw std::logic_error(state.owner + ": freed twice: " + std::to_string(rounded_bytes) +
                           " bytes given back, " + std::to_string(state.live) + " held");
  }
  state.live -= rounded_bytes;
  (state.lifetime == Lifetime::kPersistent ? persistent_ : transient_) -= rounded_bytes;
  pools_[state.pool_index].use.live -= rounded_bytes;
}

void DeviceMemory::give_back_all() {
  std::vector<std::int64_t> bytes(pools_.size());
  for (SiteState& state : sites_) {
    if (state.lifetime != Lifetime::kPersistent) continue;
    bytes[state.pool_index] += state.live;
    release(state, state.live);
  }
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (bytes[i] == 0) continue;
    trace::Line line("free");
    line.str("pool", pools_[i].name).num("bytes", bytes[i]).str("owner", "engine");
    line.str("lifetime", to_string(Lifetime::kPersistent)).str("phase", recorder_.phase());
    recorder_.send(line);
  }
}

std::map<std::string, PoolUse> DeviceMemory::pools() const {
  std::map<std::string, PoolUse> out;
  for (const Pool& pool : pools_) out[pool.name] = pool.use;
  return out;
}

void DeviceMemory::begin_phase() {
  phase_ = recorder_.phase();
  peak_ = live();
  transient_peak_ = transient_;
  for (Pool& pool : pools_) pool.use.peak = pool.use.live;
  for (SiteState& state : sites_) {
    state.sizes.clear();
    state.count = 0;
    state.peak = state.live;
    state.freed_said = false;
  }
}

void DeviceMemory::end_phase(trace::Line& phase_end) {
  follow_phase();
  for (const SiteState& state : sites_) {
    if (state.lifetime == Lifetime::kTransient) {
      if (state.count > 1) tell_alloc(state, state.peak, state.count, true);
      continue;
    }
    for (const SizeCount& size : state.sizes) {
      if (size.count > 1) tell_alloc(state, size.bytes, size.count, true);
    }
  }
  phase_end.num("peak_bytes", peak_);
  phase_end.num("persistent_bytes", persistent_);
  phase_end.num("transient_peak_bytes", transient_peak_);
  std::string json = "{";
  for (const Pool& pool : pools_) {
    if (json.size() > 1) json += ',';
    trace::append_json_string(json, pool.name);
    json += ":{\"live\":" + std::to_string(pool.use.live) +
            ",\"peak\":" + std::to_string(pool.use.peak) + "}";
  }
  phase_end.raw("pools", json + "}");
}

void DeviceMemory::tell_alloc(const SiteState& state, std::int64_t bytes, std::int64_t count,
                              bool final) const {
  trace::Line line("alloc");
  line.str("pool", state.pool).num("bytes", bytes).str("owner", state.owner);
  line.str("lifetime", to_string(state.lifetime)).str("phase", recorder_.phase());
  line.num("count", count);
  if (final) line.flag("final", true);
  recorder_.send(line);
}

void DeviceMemory::out_of_memory(const SiteState& state, std::int64_t needed) const {
  throw OutOfMemory("out of memory: " + state.owner + " (pool " + state.pool + ") needs " +
                        std::to_string(needed) + " bytes, " + std::to_string(free_bytes()) +
                        " of " + std::to_string(total_) + " are free",
                    needed, free_bytes());
}

}  // namespace warmgate::engine
