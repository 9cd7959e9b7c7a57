// In which phase a source is: phases recur, and ranks lag behind each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/explain/line.h"

namespace warmgate::explain::internal {

/// When a line was printed, by every clock there is.
struct When {
  std::int64_t line = 0;
  double inner_s = kNoTime, outer_s = kNoTime;
};
/// b − a by the engine's clock, else by the wrapper's; kNoTime if neither tells.
double seconds_between(const When& a, const When& b);

struct Span {
  std::string phase;
  When first, last;  // lines
  When first_timed, last_timed;
  bool entered = false;  // a line stands in it; else it only followed from the one before
};

class Timeline {
 public:
  /// Of a hostile log; a real one has ten.
  static constexpr std::size_t kMost = 512;

  /// A line of a phase, by somebody whose last line stood in span `before` (-1 = none). Somebody
  /// slower than the others goes on in the span they left; else a change of phase opens a span.
  /// Returns the span it stands in.
  int place(const std::string& phase, int before, const When& when);
  /// The phase that follows `after` a line of span `at`; nothing happens if others are further.
  void follow(const std::string& phase, int at, const When& when);

  /// "" before the first.
  const std::string& phase() const;
  int current() const { return current_; }
  /// A line stands in the current phase; else it only follows from the one before.
  bool entered() const { return !spans_.empty() && spans_.back().entered; }
  /// Spans that a line stands in, and the last one.
  std::vector<Span> spans() const;
  const Span& operator[](int index) const { return spans_[static_cast<std::size_t>(index)]; }
  /// Spans that a line stands in.
  int count(const std::string& phase) const;
  bool empty() const { return spans_.empty(); }

 private:
  int open(const std::string& phase, const When& when);
  static void touch(Span& span, const When& when);

  std::vector<Span> spans_;
  int current_ = -1;
};

}  // namespace warmgate::explain::internal
