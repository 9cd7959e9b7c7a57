// The frames of a stack as Python prints it, which is how its exporters send the stack of an
// exception (attribute exception.stacktrace).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::target {

struct StackFrame {
  std::string function, file;  // file without folders
  std::int64_t line = 0;
};

inline constexpr std::size_t kMostFramesShown = 12;

/// Of the last traceback in `text` (what came of the others), innermost first, at most
/// kMostFramesShown. Empty where it is no stack of Python.
std::vector<StackFrame> innermost_frames(std::string_view text);

}  // namespace warmgate::target
