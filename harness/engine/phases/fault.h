// From an exception to the `fault` event.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "harness/engine/recorder.h"

namespace warmgate::engine {

/// A key of the metadata kernels did not compile in warmup.
class CompileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `fault` {type, message, function, file, line, stack, layer, layer_kind, role, phase}, as far as
/// the exception knows them. Types: AssertionError (a missing resource, as the modelled engine
/// raises it), CollectiveError, OutOfMemory, WorkspaceLocked, OpRefused, CompileError, MemoryError,
/// LogicError, RuntimeError.
trace::Line fault_line(const std::exception& error, std::string_view phase);

}  // namespace warmgate::engine
