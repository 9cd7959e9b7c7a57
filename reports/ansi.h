// Escape sequences of terminals in text that came from a log.
#pragma once

#include <string>
#include <string_view>

namespace warmgate::reports {

/// Drops ESC [ … letter and ESC ] … BEL, the two forms that colour and retitle. What is left of a
/// broken one is for the caller to make visible, as any control character.
std::string without_ansi(std::string_view text);

}  // namespace warmgate::reports
