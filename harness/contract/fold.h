// Findings that say the same about several layers, ranks or architectures become one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/contract/contract.h"

namespace warmgate::contract {

/// Equal in contract, phase, layer kind, role, key, expected and seen. `count` of the result is the
/// number of distinct `unit`s; layer and rank are the first's (rank -1 if several broke it), and
/// detail.layers and detail.ranks list all of them.
class Fold {
 public:
  void add(Finding finding, const std::string& unit);
  std::vector<Finding> take();  // in the order in which they were first added

 private:
  struct Entry {
    Finding finding;
    std::set<std::string> units;
    std::set<int> layers, ranks;
  };
  std::map<std::string, std::size_t> index_;
  std::vector<Entry> entries_;
};

/// Proof is capped: a finding lists at most this many events.
inline constexpr std::size_t kMaxProof = 16;
void add_proof(Finding& finding, std::size_t event);

}  // namespace warmgate::contract
