// Takes out of a text what differs from run to run: numbers, addresses, pids, folders.
#pragma once

#include <string>
#include <string_view>

namespace warmgate::verdict {

/// Hex addresses become `0x#`, numbers that stand alone `#`, absolute paths their last part.
/// Digits inside names stay (c128a, sm_90a, forward_v2): they say what, not when.
std::string mask(std::string_view text);
/// The last part of a path.
std::string_view last_part(std::string_view path);

}  // namespace warmgate::verdict
