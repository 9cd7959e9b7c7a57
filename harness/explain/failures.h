// Failures as they are told, and which of them was the first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/explain/grammar.h"
#include "harness/explain/timeline.h"
#include "harness/explain/tracebacks.h"

namespace warmgate::explain::internal {

struct Failure {
  Sort sort = Sort::kCause;
  std::string name;  // of the line's pattern, or "traceback"
  int source = 0;
  int worker = 0;  // index in Workers
  When when;
  std::int64_t t_ns = -1;
  std::uint64_t order = 0;  // as it was read
  std::string phase;        // the phase that its line names, "" = none
  std::string at_phase;     // where the worker was
  std::string text;         // the line, as shown
  std::string type, message, function, file;
  std::vector<std::pair<std::string, std::string>> frames;  // innermost first, ≤ 3
  std::string without;
  double silence_s = kNoTime;  // nothing moved for so long before
  std::int64_t silent_since = 0;
  bool traced = false;     // a traceback was attached
  bool stack = false;      // of a thread that was dumped
  bool recovered = false;  // the engine went on
  bool said = false;       // told to whoever listens
};

/// Bounded: the first kMost are kept, they decide.
class Failures {
 public:
  static constexpr std::size_t kMost = 1000;

  /// Index, or -1 if there are too many.
  int add(Failure failure);
  Failure& operator[](int index) { return all_[static_cast<std::size_t>(index)]; }
  const std::vector<Failure>& all() const { return all_; }
  std::vector<Failure>& all() { return all_; }

  /// The exception at the end of a traceback becomes what the failure is about.
  void attach(int index, const Exception& exception, const std::vector<Frame>& frames,
              bool newest_first, const Grammar& grammar);
  /// The same exception, told again by the same process: no new cause.
  bool told_before(int index) const;
  /// What this source told from line `from` on was recovered from.
  void recover(int source, std::int64_t from);
  /// The latest of a source that is not older than line `from`; -1 = none.
  int latest(int source, std::int64_t from) const;
  /// The earliest of a sort that was not recovered from; -1 = none.
  int first(Sort sort) const;

 private:
  std::vector<Failure> all_;
};

/// Before: by line in one source, else by the clocks that both have, else as they were read.
bool before(const Failure& a, const Failure& b);

/// Type as a fingerprint has it (design: the type alone where it says enough, else with the start
/// of its message, numbers as <r>).
std::string fingerprint_type(const Failure& failure, const Grammar& grammar);

}  // namespace warmgate::explain::internal
