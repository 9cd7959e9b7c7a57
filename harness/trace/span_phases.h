// What the spans of a start say of its phases. Spans nest (graphs are captured within warmup) where
// phases follow each other, so a span's phase is its time less that of the phases within it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/trace/event.h"

namespace warmgate::trace {

struct SpanPhase {
  std::string phase;
  int rank = -1;         // -1: its worker is not known
  std::int64_t pid = 0;  // 0: not known
  std::int64_t begin_ns = 0, end_ns = 0, res_ns = 0;
  bool error = false;     // an exception left the span
  bool last = true;       // the piece in which the span ends
  std::size_t event = 0;  // of the span
};

/// Per process in the order of time; no two of a process overlap unless its spans overlap without
/// one containing the other. Of hostile traces at most 20,000 pieces.
std::vector<SpanPhase> span_phases(const Trace& trace);

/// The faults that spans recorded, each once (an exception passes through every span around it), as
/// events `fault` of the time at which the innermost span saw them.
std::vector<Event> span_faults(const Trace& trace);

/// Adds to a finished trace what spans say and nobody else did: `fault` events, and on ranks whose
/// phases no log and no channel told, `phase_begin` and `phase_end`. `well`: the run's work was
/// done, so what an exception left was recovered from. The trace is in the order of time again.
void merge_spans(Trace& trace, bool well);

}  // namespace warmgate::trace
