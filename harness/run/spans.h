// --probe spans: a receiver beside the run, and every worker told to export its spans there.
#pragma once

#include "harness/run/prepare.h"
#include "harness/target/server/preset.h"

namespace warmgate::run {

/// Leases a port, puts a companion around the one that there is, and tells each worker its own
/// endpoint: OpenTelemetry's variables, and what `facts` add to them. A variable of the scenario's
/// own wins: then somebody else is to get the spans. Throws std::runtime_error without a free port.
void receive_spans(const target::SpanFacts& facts, Prepared& prepared);

}  // namespace warmgate::run
