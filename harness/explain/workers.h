// Who spoke: processes and ranks as a log names them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/explain/line.h"

namespace warmgate::explain::internal {

/// Rank that a label names: TP3 → 3, rank=1 → 1, Worker_PP1_TP0 → 1·tp_size + 0 if that is known
/// (> 0), "device 1" → 1; -1 if it names none or not one alone.
int rank_of_label(std::string_view label, int tp_size);

struct Worker {
  std::string label;  // "" = lines without a prefix
  int source = 0;
  std::optional<int> printed_rank;  // "rank 1 in world size 2 …"
  int span = -1;                    // of its source's timeline, the one its last line stands in
  std::vector<std::uint32_t> seen;  // how often it printed each line of the grammar
  bool suffers = false;             // it has a failure of its own

  std::uint32_t count(std::size_t rule) const { return rule < seen.size() ? seen[rule] : 0; }
};

/// Bounded: whoever comes after the first kMost is taken together as one.
class Workers {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Number of the worker that printed a line; one that is known by its pid may change its label
  /// (Worker becomes Worker_TP0 once its groups exist).
  int of(const Line& line, int source);
  /// By a label that a message names: "device 1".
  int named(std::string_view label, int source);

  Worker& operator[](int index) { return all_[static_cast<std::size_t>(index)]; }
  const Worker& operator[](int index) const { return all_[static_cast<std::size_t>(index)]; }
  std::size_t size() const { return all_.size(); }
  void set_tp(int tp) { tp_ = tp; }
  /// 0 = the log does not say.
  int tp() const { return tp_; }
  std::optional<int> rank(int index) const;
  /// Labels in order of appearance, at most 64.
  std::vector<std::string> labels() const;

 private:
  int add(std::string label, int source);

  std::vector<Worker> all_;
  std::unordered_map<std::int64_t, int> by_pid_;
  std::map<std::pair<int, std::string>, int, std::less<>> by_label_;
  int last_ = -1, last_source_ = -1;
  std::int64_t last_pid_ = -2;
  int tp_ = 0;
};

}  // namespace warmgate::explain::internal
