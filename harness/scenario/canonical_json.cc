#include "harness/scenario/canonical_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/scenario/scalars.h"
#include "harness/scenario/text_file.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

// UTF-16 code units of valid UTF-8; the order of RFC 8785, 3.2.3 differs from that of UTF-8 where
// surrogate pairs meet U+E000..U+FFFF.
std::u16string utf16(const std::string& text) {
  std::u16string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) {
      code = (code << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    }
    if (code >= 0x10000) {
      out += static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10));
      out += static_cast<char16_t>(0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      out += static_cast<char16_t>(code);
    }
    i += length;
  }
  return out;
}

void put_string(const std::string& text, std::string& out) {
  if (invalid_utf8(text) != std::string_view::npos) {
    throw std::invalid_argument("canonical JSON: a string is not UTF-8");
  }
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void put(const json& value, std::string& out);

void put_object(const json& value, std::string& out) {
  std::vector<std::pair<std::u16string, json::const_iterator>> members;
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (invalid_utf8(it.key()) != std::string_view::npos) {
      throw std::invalid_argument("canonical JSON: a key is not UTF-8");
    }
    members.emplace_back(utf16(it.key()), it);
  }
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    put_string(members[i].second.key(), out);
    out += ':';
    put(members[i].second.value(), out);
  }
  out += '}';
}

void put_integer(const json& value, std::string& out) {
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMaxInteger)
                        : std::abs(value.get<double>()) <= static_cast<double>(kMaxInteger);
  if (!fits) throw std::invalid_argument("canonical JSON: an integer beyond 2^53 - 1");
  out += std::to_string(value.get<std::int64_t>());
}

void put(const json& value, std::string& out) {
  switch (value.type()) {
    case json::value_t::null:
      out += "null";
      break;
    case json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      break;
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      put_integer(value, out);
      break;
    case json::value_t::number_float:
      out += es6_number(value.get<double>());
      break;
    case json::value_t::string:
      put_string(value.get_ref<const std::string&>(), out);
      break;
    case json::value_t::array:
      out += '[';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ',';
        put(value[i], out);
      }
      out += ']';
      break;
    case json::value_t::object:
      put_object(value, out);
      break;
    default:
      throw std::invalid_argument("canonical JSON: not a JSON value");
  }
}

}  // namespace

std::string es6_number(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("canonical JSON: NaN or infinite");
  if (value == 0) return "0";  // -0 too
  char buffer[40];
  // Shortest digits that read back as the same double: d[.ddd]e±xx.
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific);
  const std::string text(buffer, end.ptr);
  const std::size_t e = text.find('e');
  std::string digits = text.substr(0, e);
  if (digits.size() > 1) digits.erase(1, 1);
  const int n = std::stoi(text.substr(e + 1)) + 1;  // value = 0.digits * 10^n
  const int k = static_cast<int>(digits.size());
  std::string out;
  if (k <= n && n <= 21) {
    out = digits + std::string(static_cast<std::size_t>(n - k), '0');
  } else if (0 < n && n <= 21) {
    out = digits.substr(0, static_cast<std::size_t>(n)) + "." +
          digits.substr(static_cast<std::size_t>(n));
  } else if (-6 < n && n <= 0) {
    out = "0." + std::string(static_cast<std::size_t>(-n), '0') + digits;
  } else {
    out =
        digits.substr(0, 1) + (k > 1 ? "." + digits.substr(1) : "") + fmt::format("e{:+d}", n - 1);
  }
  return value < 0 ? "-" + out : out;
}

std::string canonical_json(const json& value) {
  std::string out;
  put(value, out);
  return out;
}

}  // namespace warmgate::scenario
