#include "harness/run/bundle_text.h"

#include <array>

namespace warmgate::run {
namespace {

constexpr std::string_view kGone = "[prompt]";
constexpr auto kFields = std::to_array<std::string_view>(
    {"prompt", "prompts", "messages", "prompt_token_ids", "prompt_ids", "input_ids", "prompt_text",
     "completion", "completion_text", "output_text", "generated_text", "answer"});

bool is_text_field(std::string_view name) {
  for (const std::string_view field : kFields) {
    if (name == field) return true;
  }
  return false;
}

// Where a value that begins at `at` ends: a quoted or bracketed one after its end, else the line's.
std::size_t value_end(std::string_view text, std::size_t at) {
  const std::size_t line = std::min(text.find('\n', at), text.size());
  if (at >= line) return at;
  const char open = text[at];
  if (open == '\'' || open == '"') {
    for (std::size_t i = at + 1; i < line; ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == open) {
        return i + 1;
      }
    }
    return line;
  }
  if (open == '[' || open == '{') {
    int depth = 0;
    for (std::size_t i = at; i < line; ++i) {
      if (text[i] == '[' || text[i] == '{') ++depth;
      if ((text[i] == ']' || text[i] == '}') && --depth == 0) return i + 1;
    }
    return line;
  }
  return at;  // a bare word counts something
}

}  // namespace

std::string without_prompts(std::string_view text) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ':' && text[i] != '=') continue;
    std::size_t end = i;
    while (end > done && (text[end - 1] == '"' || text[end - 1] == '\'')) --end;
    std::size_t begin = end;
    while (begin > done && end - begin < 20 &&
           ((text[begin - 1] | 0x20) >= 'a' && (text[begin - 1] | 0x20) <= 'z'))
      --begin;
    while (begin > done && text[begin - 1] == '_') {
      --begin;
      while (begin > done && (text[begin - 1] | 0x20) >= 'a' && (text[begin - 1] | 0x20) <= 'z')
        --begin;
    }
    if (begin == end || !is_text_field(text.substr(begin, end - begin))) continue;
    std::size_t at = i + 1;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    const std::size_t stop = value_end(text, at);
    if (stop <= at) continue;
    out += text.substr(done, at - done);
    out += kGone;
    done = stop;
    i = stop - 1;
  }
  return out + std::string(text.substr(done));
}

bool drop_prompts(nlohmann::json& value) {
  bool any = false;
  if (value.is_string()) {
    std::string clean = without_prompts(value.get_ref<const std::string&>());
    any = clean != value.get_ref<const std::string&>();
    if (any) value = std::move(clean);
  } else if (value.is_object()) {
    for (auto& [name, item] : value.items()) {
      const bool holds = item.is_string()
                             ? !item.get_ref<const std::string&>().empty() && item != kGone
                             : item.is_array() && !item.empty();
      if (is_text_field(name) && holds) {
        item = kGone;
        any = true;
      } else {
        any = drop_prompts(item) || any;
      }
    }
  } else if (value.is_array()) {
    for (auto& item : value) any = drop_prompts(item) || any;
  }
  return any;
}

}  // namespace warmgate::run
