#include "harness/explain/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace warmgate::explain {
namespace {

constexpr std::size_t kLeastBytes = 6;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}
bool ends_value(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("'\",;&)]}<>|`").find(c) != std::string_view::npos;
}

// A value that tells nothing: masking it would eat the text around.
bool is_plain(std::string_view value) {
  static const std::set<std::string_view> kWords = {"None",   "null",   "true",     "false",
                                                    "True",   "False",  "required", "[secret]",
                                                    "bearer", "Bearer", "nullptr"};
  // <|endoftext|> and its like are what models call tokens.
  return value.size() < kLeastBytes || value[0] == '<' || kWords.count(value) > 0 ||
         value.find_first_not_of("*.xX0123456789") == std::string_view::npos;
}

void take(std::string_view value, std::set<std::string>& out) {
  if (!is_plain(value)) out.emplace(value);
}

// From `at`, which may point to quotes: the value up to its end.
std::string_view value_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  const char quote = text[at];
  if (quote == '\'' || quote == '"') {
    const std::size_t end = text.find(quote, at + 1);
    return text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
  }
  std::size_t end = at;
  while (end < text.size() && !ends_value(text[end])) ++end;
  return text.substr(at, end - at);
}

void bearer_tokens(std::string_view text, std::set<std::string>& out) {
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic "}) {
    for (std::size_t at = text.find(scheme); at != std::string_view::npos;
         at = text.find(scheme, at + 1)) {
      const std::string_view value = value_at(text, at + scheme.size());
      if (value.size() >= 8) take(value, out);
    }
  }
}

void url_passwords(std::string_view text, std::set<std::string>& out) {
  for (std::size_t at = text.find("://"); at != std::string_view::npos;
       at = text.find("://", at + 1)) {
    const std::size_t begin = at + 3;
    std::size_t end = begin;
    while (end < text.size() && !ends_value(text[end]) && text[end] != '/' && text[end] != '?')
      ++end;
    const std::string_view authority = text.substr(begin, end - begin);
    const std::size_t host = authority.rfind('@');
    const std::size_t colon = authority.find(':');
    if (host == std::string_view::npos) continue;
    // https://TOKEN@host as well as https://user:password@host.
    take(colon != std::string_view::npos && colon < host
             ? authority.substr(colon + 1, host - colon - 1)
             : authority.substr(0, host),
         out);
  }
}

void known_shapes(std::string_view text, std::set<std::string>& out) {
  struct Shape {
    std::string_view begin;
    std::size_t least;  // bytes after it
  };
  static constexpr std::array<Shape, 10> kShapes = {{{"hf_", 16},
                                                     {"sk-", 16},
                                                     {"ghp_", 16},
                                                     {"gho_", 16},
                                                     {"ghs_", 16},
                                                     {"github_pat_", 16},
                                                     {"glpat-", 16},
                                                     {"nvapi-", 16},
                                                     {"xoxb-", 16},
                                                     {"AKIA", 16}}};
  for (const Shape& shape : kShapes) {
    for (std::size_t at = text.find(shape.begin); at != std::string_view::npos;
         at = text.find(shape.begin, at + 1)) {
      if (at > 0 && is_word(text[at - 1])) continue;
      std::size_t end = at + shape.begin.size();
      while (end < text.size() && is_word(text[end])) ++end;
      if (end - at - shape.begin.size() >= shape.least) take(text.substr(at, end - at), out);
    }
  }
}

// NAME=value and its relatives: a name that is a secret's, a separator, a value.
void named_values(std::string_view text, bool (*is_secret_name)(std::string_view),
                  std::set<std::string>& out) {
  for (std::size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    std::string_view name = text.substr(at, end - at);
    const bool option = name.rfind("--", 0) == 0;
    if (option) name.remove_prefix(2);
    // What a signed URL ends with; nobody names a variable so.
    const bool signature = name == "X-Amz-Signature" || name == "X-Amz-Credential" ||
                           name == "X-Amz-Security-Token" || name == "X-Goog-Signature" ||
                           name == "Signature" || name == "sig";
    std::size_t value = end;
    if (value < text.size() && (text[value] == '\'' || text[value] == '"')) ++value;  // 'name':
    const std::size_t before = value;
    while (value < text.size() && text[value] == ' ') ++value;
    const bool separated = value < text.size() && (text[value] == '=' || text[value] == ':');
    if (separated) {
      ++value;
      while (value < text.size() && text[value] == ' ') ++value;
    }
    const bool follows = separated || (option && value > before);
    if (follows && (signature || is_secret_name(name))) take(value_at(text, value), out);
    at = end;
  }
}

}  // namespace

std::vector<std::string> secrets_in(std::string_view text,
                                    bool (*is_secret_name)(std::string_view)) {
  std::set<std::string> found;
  bearer_tokens(text, found);
  url_passwords(text, found);
  known_shapes(text, found);
  named_values(text, is_secret_name, found);
  std::vector<std::string> out(found.begin(), found.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return out;
}

}  // namespace warmgate::explain
