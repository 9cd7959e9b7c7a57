// The arguments that TGI's launcher prints of itself: a struct of Rust, over many lines or in one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmgate::explain {

/// `text`: from `Args {` to its `}`, whatever a log store put in front of each line. Pairs as
/// python_dict() has them ("True", "False"); only what changes how a server starts, and only what
/// is set.
std::vector<std::pair<std::string, std::string>> tgi_args(std::string_view text);

}  // namespace warmgate::explain
