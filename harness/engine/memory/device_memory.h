// The memory of one device: a total, allocations rounded to 512 bytes, no fragmentation, live and
// peak bytes per pool and phase. Every allocation and release is told to the recorder, folded.
// What lies behind the addresses is the device's affair (ops/device.h); the sums are the same.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/engine/ops/device.h"
#include "harness/engine/recorder.h"

namespace warmgate::engine {

enum class Lifetime : std::uint8_t { kPersistent, kTransient };
std::string_view to_string(Lifetime lifetime);

/// The device is full. `needed` is the rounded request, `free` what was left, both in bytes.
class OutOfMemory : public std::runtime_error {
 public:
  OutOfMemory(const std::string& message, std::int64_t needed_in, std::int64_t free_in)
      : std::runtime_error(message), needed(needed_in), free(free_in) {}
  std::int64_t needed, free;
};

struct PoolUse {
  std::int64_t live = 0, peak = 0;  // bytes; peak within the current phase
};

class DeviceMemory {
 public:
  static constexpr std::int64_t kRounding = 512;
  /// One place that allocates; made once, so that the hot path does no look-up.
  using Site = std::int32_t;
  struct Allocation {
    std::uint64_t address = 0;  // of lasting memory: never reused
    std::int64_t bytes = 0;     // rounded
    Site site = -1;
    bool held() const { return site >= 0; }
  };

  /// A stretch of work whose transient memory goes as one; the last one in is the first one out.
  struct Scope {
    std::uint64_t mark = 0;
    int depth = 0;
  };

  /// Throws std::invalid_argument for a total below 1, std::runtime_error where the device has no
  /// addresses for it.
  DeviceMemory(std::int64_t total_bytes, Recorder& recorder,
               const Device& device = accounting_device());

  Site site(std::string_view pool, std::string_view owner, Lifetime lifetime);
  /// Throws OutOfMemory naming owner, needed and free bytes. `bytes` 0 takes nothing.
  /// Transient memory is always poisoned; lasting memory as `fresh` says.
  Allocation alloc(Site site, std::int64_t bytes, Fresh fresh = Fresh::kPoison);
  Allocation alloc(std::string_view pool, std::int64_t bytes, std::string_view owner,
                   Lifetime lifetime, Fresh fresh = Fresh::kPoison);
  /// Throws std::logic_error if more is given back than its pool holds.
  void free(const Allocation& allocation);

  Scope enter() { return {backing_->mark(), ++depth_}; }
  /// Throws std::logic_error if `scope` is not the innermost: memory taken in it now would go with
  /// the scope inside.
  void check_innermost(const Scope& scope) const {
    if (scope.depth != depth_) not_innermost();
  }
  /// Gives back `rounded_bytes` that allocations of `site` took since enter(). Throws
  /// std::logic_error if the scope is not the innermost.
  void leave(const Scope& scope, Site site, std::int64_t rounded_bytes);
  /// Whether transient memory is poisoned where the device lets us choose
  /// (Backing::poison_scratch).
  void poison_scratch(bool poisons) { backing_->poison_scratch(poisons); }
  /// The engine ends: what is held for its lifetime goes all at once, a `free` event a pool.
  void give_back_all();

  std::int64_t total() const { return total_; }
  std::int64_t live() const { return persistent_ + transient_; }
  std::int64_t free_bytes() const { return total_ - live(); }
  /// Counted, with nothing behind it (Fresh::kStandIn); part of live().
  std::int64_t stand_in_bytes() const { return stand_in_; }
  /// What the backing has taken from the device for this memory: live bytes without stand-ins, and
  /// scratch at its highest.
  std::int64_t backed_bytes() const { return persistent_ - stand_in_ + scratch_peak_; }
  std::int64_t persistent_bytes() const { return persistent_; }
  /// Since begin_phase() (or since the recorder's phase changed, whichever came last).
  std::int64_t peak_bytes() const { return peak_; }
  std::int64_t transient_peak_bytes() const { return transient_peak_; }
  std::map<std::string, PoolUse> pools() const;

  /// Peaks restart from what is live.
  void begin_phase();
  /// Sends the folded counts of the phase's allocation sites and adds peak_bytes, persistent_bytes,
  /// transient_peak_bytes and pools{name: {live, peak}} to the phase_end line.
  void end_phase(trace::Line& phase_end);

 private:
  struct SizeCount {
    std::int64_t bytes = 0, count = 0;
  };
  struct SiteState {
    std::string pool, owner;
    Lifetime lifetime = Lifetime::kPersistent;
    std::size_t pool_index = 0;
    std::vector<SizeCount> sizes;  // persistent: one entry a distinct size of this phase
    std::int64_t count = 0, live = 0, peak = 0;
    bool freed_said = false;
  };
  struct Pool {
    std::string name;
    PoolUse use;
  };
  void release(SiteState& state, std::int64_t rounded_bytes);
  [[noreturn]] static void not_innermost();
  void follow_phase() {
    if (recorder_.phase() != phase_) begin_phase();
  }
  void tell_alloc(const SiteState& state, std::int64_t bytes, std::int64_t count, bool final) const;
  [[noreturn]] void out_of_memory(const SiteState& state, std::int64_t needed) const;

  std::int64_t total_;
  Recorder& recorder_;
  std::string phase_;
  std::unique_ptr<Backing> backing_;
  int depth_ = 0;  // scopes that are open
  std::int64_t persistent_ = 0, transient_ = 0, peak_ = 0, transient_peak_ = 0;
  std::int64_t stand_in_ = 0, scratch_peak_ = 0;
  std::vector<Pool> pools_;
  std::deque<SiteState> sites_;
  std::unordered_map<std::string, Site> by_name_;
};
using Allocation = DeviceMemory::Allocation;

}  // namespace warmgate::engine
