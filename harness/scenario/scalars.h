// Words of a scenario as numbers. Stricter than YAML on purpose: yaml-cpp reads 010 as 8 and yes
// as true, and refuses 1e6; here each of those is an error that says what to write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmgate::scenario {

/// A value, or why there is none (what is wrong and what is allowed).
template <typename T>
struct Reading {
  std::optional<T> value;
  std::string why;
  explicit operator bool() const { return value.has_value(); }
};

/// Integers outside +-(2^53 - 1) are not exact in JSON (RFC 8785 uses doubles), so none is legal.
inline constexpr std::int64_t kMaxInteger = 9007199254740991;

/// Decimal digits with an optional minus; no leading zero, sign +, exponent, underscore or 0x.
Reading<std::int64_t> read_integer(std::string_view text);
/// A decimal number, exponents allowed; never NaN or infinite.
Reading<double> read_real(std::string_view text);
/// `true` or `false`.
Reading<bool> read_bool(std::string_view text);

/// A number in `unit`, with or without a suffix that belongs to it. Units: "bytes" (B KB MB GB TB
/// KiB MiB GiB TiB), "s" (ns us ms s min h), "%"; any other unit takes a plain number or its own
/// word. Returns the value in `unit`.
Reading<double> read_quantity(std::string_view text, std::string_view unit);
/// A whole number of bytes, 0..2^53-1.
Reading<std::int64_t> read_bytes(std::string_view text);

/// The forms of Bound; numbers as read_quantity() takes them.
Reading<Bound> read_bound(std::string_view text, std::string_view unit);

/// YYYY-MM-DD, a day that exists.
bool is_date(std::string_view text);
/// sm_ and two or three digits, with an optional a or f: the names that NVRTC takes.
bool is_architecture(std::string_view text);

}  // namespace warmgate::scenario
