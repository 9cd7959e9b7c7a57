// Which rank a process is. What watches a process from inside does not know it; the engine in the
// same process said it in its hello.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "harness/contract/view.h"

namespace warmgate::contract {

class Processes {
 public:
  explicit Processes(const View& view);
  /// The event's own rank, else that of its pid; nothing where neither is known.
  std::optional<int> rank(const trace::Event& event) const;
  /// The event that said ready for this one's rank, else the last of all that say it; nothing where
  /// nobody did.
  std::optional<std::size_t> ready(const trace::Event& event) const;
  /// Later than that, by more than what the clocks blur.
  bool after_ready(const trace::Event& event) const;

 private:
  const View& view_;
  std::map<std::int64_t, int> ranks_;  // by pid
  std::map<int, std::size_t> ready_;   // by rank: the last that it said
  std::optional<std::size_t> last_;
};

}  // namespace warmgate::contract
