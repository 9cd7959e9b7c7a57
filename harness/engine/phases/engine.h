// Runs the phases of one rank and turns what goes wrong into events.
#pragma once

#include <string>
#include <vector>

#include "harness/engine/parallel/collectives.h"
#include "harness/scenario/resolved.h"
#include "harness/trace/wire.h"
#include "kernels/jit/jit.h"

namespace warmgate::engine {

/// The kinds of events that this engine sends whenever they happen.
const std::vector<std::string>& emitted_kinds();

/// Goes through all phases and says `bye` (the caller said `hello`). True if all went well. On a
/// failure: `fault`, phase_end failed, the other ranks are told; false. Throws nothing. `entered`,
/// if given, is called with each phase's name (a literal) before it begins.
bool run_engine(const scenario::Resolved& config, trace::EventWriter& writer,
                Collectives& collectives, jit::Compiler& compiler,
                void (*entered)(const char* phase) = nullptr);

}  // namespace warmgate::engine
