// A sum over ranks: fp32, one rank after the other, rounded once.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/engine/parallel/collectives.h"

namespace warmgate::engine {

class RankSum {
 public:
  /// `bytes` of elements, all zero.
  void assign(Element element, std::size_t bytes);
  /// One rank's elements; call in the order of ranks.
  void add(const std::byte* data);
  void round_to(std::byte* data) const;

 private:
  Element element_ = Element::kFp32;
  bool first_ = true;
  std::vector<float> sums_;
};

}  // namespace warmgate::engine
