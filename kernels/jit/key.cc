#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "kernels/jit/jit.h"

namespace warmgate::jit {
namespace {

constexpr std::size_t kMaxKeyBytes = 4096;

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  std::string message =
      "compile key '" + std::string(text.substr(0, 120)) + "': " + why.substr(0, 240);
  for (char& c : message) c = c < 0x20 || c == 0x7f ? '?' : c;  // also NUL: what() is a C string
  throw std::runtime_error(message);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

bool is_value(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

}  // namespace

std::string Key::text() const {
  std::string out = kernel + "{";
  for (const auto& [name, value] : fields) {
    if (out.back() != '{') out += ',';
    out += name + "=" + value;
  }
  return out + "}";
}

Key parse_key(std::string_view text) {
  if (text.size() > kMaxKeyBytes) refuse(text, "longer than 4096 bytes");
  const auto open = text.find('{');
  if (open == std::string_view::npos || text.back() != '}') {
    refuse(text, "expected Kernel{NAME=value,...}");
  }
  Key key;
  key.kernel = text.substr(0, open);
  if (!is_word(key.kernel)) refuse(text, "the kernel's name is not an identifier");
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view field = rest.substr(0, comma);
    const auto equals = field.find('=');
    if (equals == std::string_view::npos)
      refuse(text, "field '" + std::string(field) + "' has no '='");
    const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    if (!is_word(name)) refuse(text, "field name '" + std::string(name) + "' is not an identifier");
    if (!is_value(value)) {
      refuse(text, "value of " + std::string(name) + " is '" + std::string(value) +
                       "', neither a number nor a word");
    }
    for (const auto& [seen, unused] : key.fields) {
      if (seen == name) refuse(text, "field " + std::string(name) + " is there twice");
    }
    key.fields.emplace_back(name, value);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) refuse(text, "a comma without a field after it");
  }
  return key;
}

std::string_view to_string(Cached cached) {
  return cached == Cached::kKept ? "disk" : cached == Cached::kUnwritable ? "unwritable" : "none";
}

std::string_view to_string(Source source) {
  switch (source) {
    case Source::kMemory:
      return "memory";
    case Source::kDisk:
      return "disk";
    case Source::kCompiler:
      return "compiler";
  }
  return "compiler";
}

}  // namespace warmgate::jit
