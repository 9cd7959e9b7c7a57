#include "harness/explain/timeline.h"

#include <algorithm>

namespace warmgate::explain::internal {

double seconds_between(const When& a, const When& b) {
  if (has_time(a.inner_s) && has_time(b.inner_s)) return b.inner_s - a.inner_s;
  return b.outer_s - a.outer_s;  // not a number if one of them is none
}

void Timeline::touch(Span& span, const When& when) {
  if (!span.entered) span.first = when;
  span.entered = true;
  if (when.line >= span.last.line) span.last = when;
  if (!has_time(when.inner_s) && !has_time(when.outer_s)) return;
  if (!has_time(span.first_timed.inner_s) && !has_time(span.first_timed.outer_s)) {
    span.first_timed = when;
  }
  span.last_timed = when;
}

int Timeline::open(const std::string& phase, const When& when) {
  // A phase that only followed, and did not come, was none.
  if (!spans_.empty() && !spans_.back().entered) spans_.pop_back();
  if (spans_.size() >= kMost) spans_.back().phase = phase;
  if (spans_.size() < kMost && (spans_.empty() || spans_.back().phase != phase)) {
    Span span;
    span.phase = phase;
    span.first = span.last = when;
    spans_.push_back(std::move(span));
  }
  return current_ = static_cast<int>(spans_.size()) - 1;
}

int Timeline::place(const std::string& phase, int before, const When& when) {
  if (current_ >= 0 && spans_.back().phase == phase) {
    touch(spans_.back(), when);
    return current_;
  }
  if (before >= 0 && before < current_) {
    for (int i = before; i < current_; ++i) {
      Span& span = spans_[static_cast<std::size_t>(i)];
      if (span.phase != phase || !span.entered) continue;
      touch(span, when);
      return i;
    }
  }
  const int index = open(phase, when);
  touch(spans_[static_cast<std::size_t>(index)], when);
  return index;
}

void Timeline::follow(const std::string& phase, int at, const When& when) {
  if (at != current_ || (current_ >= 0 && spans_.back().phase == phase)) return;
  open(phase, when);
}

const std::string& Timeline::phase() const {
  static const std::string none;
  return spans_.empty() ? none : spans_.back().phase;
}

std::vector<Span> Timeline::spans() const {
  std::vector<Span> out;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].entered || i + 1 == spans_.size()) out.push_back(spans_[i]);
  }
  return out;
}

int Timeline::count(const std::string& phase) const {
  return static_cast<int>(std::count_if(spans_.begin(), spans_.end(), [&](const Span& span) {
    return span.entered && span.phase == phase;
  }));
}

}  // namespace warmgate::explain::internal
