// JSON in the one form that RFC 8785 gives it, for hashes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace warmgate::scenario {

/// RFC 8785 (JSON Canonicalization Scheme): keys sorted by UTF-16 code units, no white space,
/// ECMAScript numbers, shortest escapes. Throws std::invalid_argument for NaN, infinities, integers
/// beyond +-(2^53 - 1) and strings that are not UTF-8: they have no canonical form.
std::string canonical_json(const nlohmann::json& value);

/// A finite double as ECMAScript's Number::toString (ECMA-262, 7.1.12.1) writes it.
std::string es6_number(double value);

}  // namespace warmgate::scenario
