// The known name that a mistyped one probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgate::cli {

/// "" if none is near: more than a third of the longer word (at least 1) would have to change.
/// Swapped neighbours count as one change.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace warmgate::cli
