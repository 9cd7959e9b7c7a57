// `step` events, folded: one line the first time a shape of step is seen in a phase, one with the
// count at its end.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "harness/engine/recorder.h"

namespace warmgate::engine {

struct StepShape {
  bool dummy = false;
  std::int64_t rows = 0, prefills = 0, decodes = 0;
  std::int64_t longest = 0;     // context of any of its requests
  std::int64_t draft_rows = 0;  // of the drafter's query block
};

class StepLog {
 public:
  /// Distinct shapes of one phase that get a line of their own; the others are counted together.
  static constexpr std::size_t kMostShapes = 120;

  explicit StepLog(Recorder& recorder) : recorder_(recorder) {}
  /// Numbered from 0 over the whole run.
  void add(const StepShape& shape);
  /// Sends the counts of the phase; call before its phase_end.
  void end_phase();
  std::int64_t steps() const { return next_id_; }

 private:
  struct Seen {
    std::int64_t first_id = 0, count = 0;
    StepShape shape;  // with the longest context and the most draft rows of all
  };
  /// Contexts of real steps grow by one a step: those are one shape.
  using Key = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  void tell(const Seen& seen, bool final);
  Recorder& recorder_;
  std::map<Key, Seen> shapes_;
  Seen others_;
  std::int64_t others_rows_ = 0;
  std::int64_t next_id_ = 0;
};

}  // namespace warmgate::engine
