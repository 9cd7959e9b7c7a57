// One start as it goes, in lines for a person: what began, what came, and what comes too late.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/trace/event.h"

namespace warmgate::run {

struct LiveLine {
  enum class Kind { kStep, kReady, kLate, kTrouble, kNote };
  double t_s = 0;  // since the start
  Kind kind = Kind::kStep;
  std::string text;
};

/// Folds events into lines. Before ready code and memory are summed and told with the end of each
/// phase; afterwards each of them is a line, because serving pays for it.
class Live {
 public:
  /// `t_ns`: of the start, monotonic.
  explicit Live(std::int64_t t_ns) : start_ns_(t_ns) {}
  std::vector<LiveLine> take(const trace::Event& event);
  /// Sums that no line has told yet; "" if there are none.
  std::string sums() const;
  bool ready() const { return ready_ns_.has_value(); }
  /// Every rank that said hello has said ready, or somebody who speaks for all of them has.
  bool all_ready() const;
  /// When the last of them said so.
  std::optional<double> ready_s() const;

 private:
  LiveLine line(const trace::Event& event, LiveLine::Kind kind, std::string text) const;
  bool late(const trace::Event& event) const;
  std::optional<LiveLine> code(const trace::Event& event);
  std::optional<LiveLine> memory(const trace::Event& event);
  std::string who(const trace::Event& event) const;

  std::int64_t start_ns_;
  std::optional<std::int64_t> ready_ns_;
  std::map<std::pair<std::string, std::string>, std::int64_t> phases_;  // source, phase → begin
  std::set<int> ranks_, hello_, said_ready_;  // that sent anything, that said so
  std::int64_t world_ = 0;                    // as the largest hello says
  bool ready_for_all_ = false;
  std::optional<std::int64_t> all_ready_ns_;  // the last of them said it
  std::set<std::string> told_;                // lines that are said once
  std::int64_t modules_ = 0, code_bytes_ = 0, taken_ = 0, given_ = 0, compiles_ = 0, graphs_ = 0;
};

}  // namespace warmgate::run
