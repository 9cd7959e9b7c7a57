// config.json as Python's json module writes it: strict JSON, and besides it the words Infinity,
// -Infinity and NaN, which that module puts in (a Mamba model's time_step_limit has one).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/plan/shrink/problem.h"

namespace warmgate::plan::shrink {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMostConfigBytes = 4 << 20;
inline constexpr int kMostDepth = 32;

/// The bytes of a regular file of at most kMostConfigBytes; what is none, or more, is a complaint.
/// Opened without blocking: a pipe or a device is refused rather than waited for.
std::string read_config_text(const std::filesystem::path& path, Complaints& complaints);

/// An object, its keys in the order of the text. Anything else, a key that comes twice, nesting
/// beyond kMostDepth and numbers beyond a double are complaints; then the result is null.
Json parse_config(std::string_view text, Complaints& complaints);

/// True for NaN, Infinity and -Infinity, which a parsed config holds as marked texts.
bool is_python_word(const Json& value);

/// The reverse: two blanks of indentation, flat lists on one line, a newline at the end.
std::string config_text(const Json& config);

}  // namespace warmgate::plan::shrink
