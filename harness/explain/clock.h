// The stamps of one start on one scale. Engines and log stores count from different beginnings, and
// one log holds several: vLLM prints no year, the libraries that it starts do, docker prints its
// own.
#pragma once

#include <array>
#include <limits>

#include "harness/explain/line.h"
#include "harness/explain/timeline.h"

namespace warmgate::explain::internal {

/// Dates with a year as dates without one: the first year that a start shows is the year 2000,
/// which stands for a year that is not known. One for all logs of a start.
class YearScale {
 public:
  double without_year(double seconds);

 private:
  int first_ = 0;                          // 0 = no year yet
  double from_ = 0, to_ = -1, shift_ = 0;  // part of a year that was asked for last
};

/// Of one kind of stamps, the engine's or the wrapper's, in one log: the first that is seen sets
/// the scale, and the others follow it.
class Scale {
 public:
  /// kNoTime without a stamp.
  double take(double seconds, Origin from, YearScale& years);
  Origin origin() const { return origin_; }
  double first() const { return first_; }  // the earliest, kNoTime = none

 private:
  double placed(double seconds, Origin from);

  Origin origin_ = Origin::kNone;
  double last_ = kNoTime, first_ = kNoTime;
  // What stamps of another origin need to be on this scale.
  std::array<double, static_cast<std::size_t>(Origin::kOrigins)> shift_ = no_shifts();
  static std::array<double, static_cast<std::size_t>(Origin::kOrigins)> no_shifts() {
    std::array<double, static_cast<std::size_t>(Origin::kOrigins)> out{};
    out.fill(kNoTime);
    return out;
  }
};

/// Of one log.
class Clock {
 public:
  When when(const Line& line, std::int64_t number, YearScale& years);
  /// By the engine's clock, or by the wrapper's where the engine prints none at all; a line that
  /// has the wrapper's alone is placed by one that had both. kNoTime = cannot be told.
  double at(const When& when) const;
  /// The earliest stamp, on the scale of at().
  double first() const;
  /// Two logs of the same origin have the same scale.
  Origin origin() const {
    return engine_.origin() == Origin::kNone ? wrapper_.origin() : engine_.origin();
  }
  bool of_wrapper() const { return engine_.origin() == Origin::kNone; }

 private:
  Scale engine_, wrapper_;
  double apart_ = kNoTime;  // wrapper's − engine's, of the first line with both
};

}  // namespace warmgate::explain::internal
