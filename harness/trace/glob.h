// Shell-like patterns over text, used by `allow` on keys and by path filters.
#pragma once

#include <string_view>

namespace warmgate::trace {

/// `*` matches any run of characters (also none, also `/`), `?` exactly one; everything else,
/// brackets and braces included, is literal, because compile keys contain them.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace warmgate::trace
