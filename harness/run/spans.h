// --probe spans: a receiver beside the run, and every worker told to export its spans there.
#pragma once

#include <memory>

#include "harness/target/companion.h"
#include "harness/target/server/preset.h"
#include "harness/target/target.h"

namespace warmgate::run {

/// Leases a port, puts a companion around the one that `spec` has (or has not), and tells each
/// worker its own endpoint: OpenTelemetry's variables, and what `facts` add to them. A variable of
/// the scenario's own wins: then somebody else is to get the spans. What it returns outlives the
/// run. Throws std::runtime_error without a free port.
std::unique_ptr<target::Companion> receive_spans(const target::SpanFacts& facts,
                                                 target::TargetSpec& spec);

}  // namespace warmgate::run
