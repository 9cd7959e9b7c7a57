// Which rank an event is of, where its sender could not know: what watches a process from inside
// has its number, and the engine in the same process said its rank in its hello.
#pragma once

#include "harness/trace/event.h"

namespace warmgate::trace {

/// Sets `rank` of events that have none and whose `pid` is that of a hello with a rank. A process
/// that said hello as several ranks is none of them.
void name_ranks(Trace& trace);

}  // namespace warmgate::trace
