// Free blocks of the slab. Block 0 is the null block: it stands for "nothing here" and is never
// given out. A block belongs to one group at a time, so all groups draw from this one pool.
#pragma once

#include <cstdint>
#include <vector>

namespace warmgate::engine {

class BlockPool {
 public:
  BlockPool() = default;
  explicit BlockPool(std::int64_t num_blocks);
  std::int64_t total() const { return total_; }  // with the null block
  std::int64_t free() const {
    return total_ - next_fresh_ + static_cast<std::int64_t>(back_.size());
  }
  /// Throws std::logic_error if none is free: callers check first.
  std::int32_t take();
  /// Throws std::out_of_range for the null block or an id that was never given out.
  void give_back(std::int32_t block);

 private:
  std::int64_t total_ = 1;
  std::int64_t next_fresh_ = 1;  // blocks from here on were never given out
  std::vector<std::int32_t> back_;
};

}  // namespace warmgate::engine
