// Sequence numbers per communicator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmgate::engine {

class SequenceNumbers {
 public:
  /// 0 for the first operation on a communicator.
  std::int64_t next(std::string_view communicator) { return ++entry(communicator); }
  std::int64_t last(std::string_view communicator) const {
    for (const auto& [name, seq] : entries_) {
      if (name == communicator) return seq;
    }
    return -1;
  }

 private:
  // A handful of communicators: walking them beats hashing.
  std::int64_t& entry(std::string_view communicator) {
    for (auto& [name, seq] : entries_) {
      if (name == communicator) return seq;
    }
    return entries_.emplace_back(std::string(communicator), -1).second;
  }
  std::vector<std::pair<std::string, std::int64_t>> entries_;
};

}  // namespace warmgate::engine
