#include "harness/explain/clock.h"

#include <algorithm>
#include <cmath>

#include "harness/explain/stamps.h"

namespace warmgate::explain::internal {
namespace {

constexpr double kDayLong = 86400;
constexpr double kYearLong = 366 * kDayLong;  // the year 2000

// A stamp that begins anew with every period, as near to the one before as it can be.
double nearest(double seconds, double last, double period) {
  return has_time(last) ? seconds + std::round((last - seconds) / period) * period : seconds;
}

}  // namespace

double YearScale::without_year(double seconds) {
  if (seconds >= from_ && seconds < to_) return seconds + shift_;
  int year = 1970 + static_cast<int>(std::floor(seconds / (365.2425 * kDayLong)));
  while (date_seconds(year + 1, 1, 1) <= seconds) ++year;
  while (date_seconds(year, 1, 1) > seconds) --year;
  if (first_ == 0) first_ = year;
  // 29 February moves what comes after it.
  const double march = date_seconds(year, 3, 1);
  const int month = seconds < march ? 1 : 3;
  from_ = date_seconds(year, month, 1);
  to_ = month == 1 ? march : date_seconds(year + 1, 1, 1);
  shift_ = date_seconds(2000 + year - first_, month, 1) - from_;
  return seconds + shift_;
}

double Scale::placed(double seconds, Origin from) {
  if (origin_ == Origin::kNone) origin_ = from;
  if (from == origin_) {
    if (from == Origin::kMidnight) return nearest(seconds, last_, kDayLong);
    return from == Origin::kDate ? nearest(seconds, last_, kYearLong) : seconds;
  }
  if (from == Origin::kMidnight && origin_ == Origin::kDate)
    return nearest(seconds, last_, kDayLong);
  // Nothing says what lies between the two, except that the line follows the one before.
  double& shift = shift_[static_cast<std::size_t>(from)];
  if (!has_time(shift)) {
    shift = last_ - seconds;
    // A date is whole days away from a time of day.
    if (from == Origin::kDate && origin_ == Origin::kMidnight)
      shift = std::round(shift / kDayLong) * kDayLong;
  }
  return seconds + shift;
}

double Scale::take(double seconds, Origin from, YearScale& years) {
  if (!has_time(seconds)) return kNoTime;
  const bool year = from == Origin::kYear;
  const double out =
      placed(year ? years.without_year(seconds) : seconds, year ? Origin::kDate : from);
  last_ = out;
  first_ = has_time(first_) ? std::min(first_, out) : out;
  return out;
}

When Clock::when(const Line& line, std::int64_t number, YearScale& years) {
  When out;
  out.line = number;
  out.inner_s = engine_.take(line.inner_s, line.inner_from, years);
  out.outer_s = wrapper_.take(line.outer_s, line.outer_from, years);
  if (!has_time(apart_)) apart_ = out.outer_s - out.inner_s;  // no number if one of them is none
  return out;
}

double Clock::at(const When& when) const {
  if (has_time(when.inner_s)) return when.inner_s;
  return of_wrapper() ? when.outer_s : when.outer_s - apart_;
}

double Clock::first() const {
  if (of_wrapper()) return wrapper_.first();
  const double wrapped = wrapper_.first() - apart_;
  return has_time(wrapped) ? std::min(engine_.first(), wrapped) : engine_.first();
}

}  // namespace warmgate::explain::internal
