// Spans beside whatever else watches a run: the receiver listens from before the first worker until
// after the last one, and everything else is the other companion's.
#pragma once

#include <memory>

#include "harness/target/companion.h"
#include "harness/target/server/port.h"
#include "harness/target/spans/receiver.h"

namespace warmgate::target {

/// `lease` is where it listens, on 127.0.0.1. `inner` may be null (a run that ends when its workers
/// do), else it outlives this.
std::unique_ptr<Companion> make_span_companion(SpanFacts facts, PortLease lease, Companion* inner);

}  // namespace warmgate::target
