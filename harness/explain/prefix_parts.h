// Parts of what engines put in front of a message, by which their forms are told apart.
#pragma once

#include <string_view>

#include "harness/explain/line.h"

namespace warmgate::explain::internal {

inline Level level_of(std::string_view word) {
  switch (word.empty() ? '\0' : word[0]) {
    case 'I':
      return word == "I" || word == "INFO" ? Level::kInfo : Level::kNone;
    case 'W':
      return word == "W" || word == "WARNING" || word == "WARN" ? Level::kWarning : Level::kNone;
    case 'E':
      return word == "E" || word == "ERROR" ? Level::kError : Level::kNone;
    case 'C':
      return word == "CRITICAL" ? Level::kError : Level::kNone;
    case 'F':
      return word == "F" || word == "FATAL" ? Level::kError : Level::kNone;
    case 'D':
      return word == "D" || word == "DEBUG" ? Level::kDebug : Level::kNone;
    case 'T':
      return word == "TRACE" ? Level::kDebug : Level::kNone;
    default:
      return Level::kNone;
  }
}

// The word at the start, of capital letters.
inline std::string_view capitals(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && at < 9 && text[at] >= 'A' && text[at] <= 'Z') ++at;
  return text.substr(0, at);
}

inline void drop_spaces(std::string_view& text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
}

/// A text that begins with a bracket: SGLang's, TensorRT-LLM's, TurboMind's and c10d's. One prefix
/// less; false if it is none of these.
bool strip_bracket_prefix(std::string_view& text, Line& out);

}  // namespace warmgate::explain::internal
