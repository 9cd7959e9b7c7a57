// Which deadline runs out next. Pure logic over times that the caller gives, so that it is tested
// without waiting.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/target/target.h"

namespace warmgate::target {

/// A speaker is a source of events: a worker's pipe or a file in the events folder. A front end,
/// its core and that one's workers are speakers of one run, and only some of them speak of phases.
class PhaseClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  PhaseClock(const Deadlines& deadlines, const std::vector<std::string>& phases, Time now);

  /// Something was heard from anybody: an event, output.
  void heard(Time now) { heard_ = now; }
  /// A phase that is running already does not begin anew: its deadline would never come.
  void begin(const std::string& speaker, int rank, std::string_view phase, Time now);
  void end(const std::string& speaker, std::string_view phase, Time now);
  /// The speaker said bye or is dead: no phase of it counts any more.
  void gone(const std::string& speaker, Time now);

  struct Expiry {
    std::string kind;    // deadline | silence
    std::string phase;   // that ran too long; for silence the one in which it fell, "" before any
    int rank = -1;       // whose phase it was; -1: nobody's alone
    double after_s = 0;  // the limit that ran out, scaled
  };
  /// The limit that ran out first, if one has by `now`:
  /// a phase of a speaker: its deadline · no phase running anywhere: the default deadline since the
  /// last one began or ended · nothing heard: silence · the total.
  std::optional<Expiry> expired(Time now) const;
  /// When to ask again at the latest; nothing runs out before, unless a phase begins.
  Time next() const;

 private:
  struct Running {
    std::string phase;
    int rank = -1;
    Time since;
  };
  struct Limit {
    Time at;
    Expiry expiry;
  };
  std::vector<Limit> limits() const;
  double limit_s(const std::string& phase) const;

  Deadlines deadlines_;
  double total_s_ = 0;
  Time start_, heard_, changed_;
  std::string last_phase_;
  std::map<std::string, Running> running_;
};

}  // namespace warmgate::target
