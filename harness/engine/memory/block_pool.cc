#include "harness/engine/memory/block_pool.h"

#include <stdexcept>
#include <string>

namespace warmgate::engine {

BlockPool::BlockPool(std::int64_t num_blocks) : total_(num_blocks) {
  if (num_blocks < 1 || num_blocks > INT32_MAX) {
    throw std::invalid_argument("a slab of " + std::to_string(num_blocks) +
                                " blocks; block ids are int32 and 0 is the null block");
  }
}

std::int32_t BlockPool::take() {
  if (!back_.empty()) {
    const std::int32_t block = back_.back();
    back_.pop_back();
    return block;
  }
  if (next_fresh_ >= total_) throw std::logic_error("block pool is empty");
  return static_cast<std::int32_t>(next_fresh_++);
}

void BlockPool::give_back(std::int32_t block) {
  if (block <= 0 || block >= next_fresh_ || free() >= total_ - 1) {
    throw std::out_of_range("block " + std::to_string(block) + " was not given out");
  }
  back_.push_back(block);
}

}  // namespace warmgate::engine
