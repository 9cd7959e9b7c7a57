// For tests of the scheduler: blocks that are only counted.
#pragma once

#include <algorithm>
#include <map>

#include "harness/engine/phases/scheduler.h"

namespace warmgate::engine::test {

/// One group of blocks that are kept, one whose blocks behind a window come free.
class FakeBlocks final : public BlockSource {
 public:
  explicit FakeBlocks(std::int64_t blocks, std::int64_t block_tokens = 16, std::int64_t window = 0)
      : free_(blocks), all_(blocks), block_tokens_(block_tokens), window_(window) {}
  bool grow(std::int64_t row, std::int64_t tokens) override {
    const std::int64_t missing = (tokens + block_tokens_ - 1) / block_tokens_ - held_[row];
    if (missing > free_) return false;
    if (missing > 0) {
      free_ -= missing;
      held_[row] += missing;
    }
    return true;
  }
  void free_window(std::int64_t row, std::int64_t computed) override {
    if (window_ == 0) return;
    const std::int64_t behind = std::max<std::int64_t>(0, computed - window_ + 1) / block_tokens_;
    const std::int64_t more = std::min(behind, held_[row]) - freed_[row];
    if (more > 0) {
      freed_[row] += more;
      free_ += more;
    }
  }
  void release(std::int64_t row) override {
    free_ += held_[row] - freed_[row];
    held_.erase(row);
    freed_.erase(row);
  }
  std::int64_t free_blocks() const override { return free_; }
  bool all_back() const { return free_ == all_; }

 private:
  std::int64_t free_, all_, block_tokens_, window_;
  std::map<std::int64_t, std::int64_t> held_, freed_;
};

inline scenario::Workload one_group(std::int64_t count, std::int64_t prompt, std::int64_t output,
                                    std::int64_t start = 0) {
  return {{{count, prompt, output, start, "greedy"}}};
}

}  // namespace warmgate::engine::test
