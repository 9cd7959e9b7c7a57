// A stack whose pieces may also go one by one: one that is not topmost leaves a hole, which closes
// once what lies above it is gone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace warmgate::engine {

class ScratchHoles {
 public:
  /// Everything from `mark` on is gone; `top` follows.
  void pop_to(std::uint64_t& top, std::uint64_t mark) {
    if (mark > top) throw std::logic_error("device memory: a scope ends after one that holds it");
    top = mark;
    close(top);
  }
  /// The piece at `address` is gone.
  void pop(std::uint64_t& top, std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
    if (end > top)
      throw std::logic_error("device memory: scratch outlived the scope it was taken in");
    holes_.emplace_back(address, end);
    close(top);
  }

 private:
  void close(std::uint64_t& top) {
    std::erase_if(holes_, [&](const auto& hole) { return hole.first >= top; });
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < holes_.size() && !again; ++i) {
        if (holes_[i].second != top) continue;
        top = holes_[i].first;
        holes_.erase(holes_.begin() + static_cast<std::ptrdiff_t>(i));
        again = true;
      }
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> holes_;  // [begin, end) below the top
};

}  // namespace warmgate::engine
