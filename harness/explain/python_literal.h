// Literals as Python prints them in a log: {'a': 1, 'b': [True, None]}, f(a='x', b=2).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmgate::explain {

/// Stands for a value that is no literal: <Object at 0x…>, Config(…), a cut-off text.
inline constexpr std::string_view kPythonObject = "\x01object";

/// From the opening bracket of a dict or of a call's arguments: its pairs, in order. Texts come
/// without quotes; True, False and None as such; lists and dicts as JSON. Stops at what it does not
/// understand and returns what came before. Bounded in depth and number.
std::vector<std::pair<std::string, std::string>> python_dict(std::string_view text);

}  // namespace warmgate::explain
