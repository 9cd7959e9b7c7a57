// The reading half: events of one run, from all channels, as contracts see them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/fields.h"
#include "harness/trace/word.h"

namespace warmgate::trace {

struct Event {
  Word ev;
  std::int64_t t_ns = 0;  // monotonic
  std::optional<int> rank;
  Word src = "channel";     // channel log http probe python nccl span store census harness
  std::int64_t res_ns = 0;  // resolution of t_ns; 0 = finer than 1 us
  Fields body;              // every other field of the line
  std::string source;       // which pipe or file it came from, e.g. "rank0"
  std::size_t line = 0;     // 1-based in its source

  /// Field access that never throws: the fallback if the field is absent or of another type.
  std::string str(std::string_view key, std::string_view fallback = "") const {
    return std::string(body.text(key, fallback));
  }
  std::int64_t num(std::string_view key, std::int64_t fallback = 0) const {
    return body.num(key, fallback);
  }
  double real(std::string_view key, double fallback = 0) const { return body.real(key, fallback); }
  bool flag(std::string_view key, bool fallback = false) const { return body.flag(key, fallback); }
  std::vector<std::string> strings(std::string_view key) const;
};

/// A line that is not a legal event. Kept, shown by the protocol contract.
struct BadLine {
  std::string source;
  std::size_t line = 0;
  std::string why;      // what is wrong and what would be right
  std::string excerpt;  // at most 200 bytes of it
};

/// Events in order of arrival per source and, over all sources, of time (stable).
struct Trace {
  std::vector<Event> events;
  std::vector<BadLine> bad_lines;
  /// Phases in the order in which this target goes through them.
  std::vector<std::string> declared_phases;
  /// The ranks that were started (0..world-1); their hello may be missing.
  int world = 1;

  /// The kinds that some source of this trace would have sent had they happened (hello.emits, plus
  /// those of harness events). An absent event means zero only if its kind is in here.
  std::set<std::string> emits() const;
  std::vector<std::size_t> indices(std::string_view ev) const;
  std::vector<const Event*> of(std::string_view ev) const;
  /// Which phase `rank` was in when events[index] was sent; "" before the first.
  std::string phase_at(std::size_t index) const;
  void sort_by_time();
};

/// Feeds bytes of one source, in any pieces; appends events and bad lines to a trace.
class LineReader {
 public:
  LineReader(std::string source, Trace& trace);
  void feed(std::string_view bytes);
  /// The source ended: a rest without newline is a bad line (half a line).
  void finish();
  bool saw_hello() const { return hello_; }
  /// Of a process under test: what it says in the harness's name (src harness) is a bad line.
  void refuse_harness() { refuse_harness_ = true; }

 private:
  void accept(std::string_view line);
  void bad(std::string why, std::string_view line);
  std::string source_;
  Trace& trace_;
  std::string rest_;
  std::size_t line_ = 0;
  std::size_t skipped_ = 0;  // bytes of an over-long line thrown away so far
  bool hello_ = false, refuse_harness_ = false;
};

/// One line → event; throws std::runtime_error saying what is wrong. Kinds of the vocabulary must
/// carry their required fields; unknown kinds pass.
Event parse_event(std::string_view line);
/// The inverse: one line without the newline, fields `ev`, `t`, `rank`, `src`, then the rest.
std::string to_line(const Event& event);
/// An event of the harness itself (src "harness").
Event harness_event(std::string ev, Fields body, std::optional<int> rank = std::nullopt);

}  // namespace warmgate::trace
