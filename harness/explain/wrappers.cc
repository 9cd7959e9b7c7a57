// What log stores, schedulers and terminals put around a line. Shapes, not products: a wrapper is
// recognised where it stands in front, in any order and nesting.
#include <nlohmann/json.hpp>

#include "harness/explain/stamps.h"
#include "harness/explain/text.h"

namespace warmgate::explain::internal {
namespace {

bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.' || c == '/' || c == '@';
}

// The outermost stamp counts.
void take_outer(Line& out, double seconds, Origin from) {
  if (has_time(out.outer_s)) return;
  out.outer_s = seconds;
  out.outer_from = from;
}

void skip_spaces(std::string_view& text) {
  const std::size_t at = text.find_first_not_of(' ');
  text.remove_prefix(at == std::string_view::npos ? text.size() : at);
}

std::size_t name_length(std::string_view text, std::size_t most) {
  std::size_t at = 0;
  while (at < text.size() && at < most && is_name_char(text[at])) ++at;
  return at;
}

// `host proc[123]: ` after a journald or syslog stamp.
bool strip_host_process(std::string_view& text) {
  std::string_view rest = text;
  const std::size_t host = name_length(rest, 80);
  if (host == 0 || host >= rest.size() || rest[host] != ' ') return false;
  rest.remove_prefix(host + 1);
  std::size_t at = 0;  // process names may hold brackets and spaces: python3[1], (uvicorn)[2]
  while (at < rest.size() && at < 80 && rest[at] != ':' && rest[at] != ' ') ++at;
  if (at == 0 || at + 1 >= rest.size() || rest[at] != ':' || rest[at + 1] != ' ') return false;
  rest.remove_prefix(at + 2);
  text = rest;
  return true;
}

// `stdout F ` of CRI, and the marks of GitHub's runner.
void strip_after_stamp(std::string_view& text) {
  for (const std::string_view mark : {"stdout F ", "stderr F ", "stdout P ", "stderr P "}) {
    if (text.starts_with(mark)) return text.remove_prefix(mark.size());
  }
  for (const std::string_view mark : {"##[error]", "##[warning]", "##[debug]", "##[group]"}) {
    if (text.starts_with(mark)) return text.remove_prefix(mark.size());
  }
}

// `[WARN ] W-9000-model-stderr MODEL_LOG - ` after TorchServe's stamp.
bool strip_torchserve(std::string_view& text) {
  if (!text.starts_with("[")) return false;
  const std::size_t mark = text.substr(0, 120).find("MODEL_LOG - ");
  if (mark == std::string_view::npos) return false;
  text.remove_prefix(mark + 12);
  return true;
}

// An RFC 3339 stamp: docker's, Kubernetes', GitHub's, journald's. TGI's own has a level behind it
// and is a prefix, not a wrapper; a stamp with a space inside belongs to an engine.
bool strip_stamp(std::string_view& text, Line& out) {
  if (text.size() < 20 || text[10] != 'T') return false;
  double seconds = 0;
  const std::size_t length = iso_stamp(text, seconds);
  if (length == 0 || length >= text.size() || text[length] != ' ') return false;
  std::string_view rest = text.substr(length + 1);
  const std::string_view level = rest.substr(0, 6);
  if (level.starts_with(" INFO") || level.starts_with(" WARN") || level.starts_with("ERROR ") ||
      level.starts_with("DEBUG ") || level.starts_with("TRACE ")) {
    if (rest.find("text_generation") != std::string_view::npos || level[0] == ' ') return false;
  }
  take_outer(out, seconds, Origin::kYear);
  text = rest;
  if (!strip_torchserve(text) && !strip_host_process(text)) strip_after_stamp(text);
  return true;
}

// `[2025-03-10T15:07:20Z] `, `[pod/vllm-0/engine] `, `[service]   | `, `[8081] `, `[1,0]<stdout>:`.
bool strip_bracket(std::string_view& text, Line& out) {
  double seconds = 0;
  if (text.size() > 22 && text[11] == 'T') {
    const std::size_t length = iso_stamp(text.substr(1), seconds);
    if (length > 0 && length + 1 < text.size() && text[length + 1] == ']') {
      take_outer(out, seconds, Origin::kYear);
      text.remove_prefix(length + 2);
      if (text.starts_with(' ')) text.remove_prefix(1);
      return true;
    }
  }
  const std::size_t close = text.substr(0, 160).find(']');
  if (close == std::string_view::npos || close < 2) return false;
  const std::string_view inside = text.substr(1, close - 1);
  std::string_view rest = text.substr(close + 1);
  if (inside.starts_with("pod/") && rest.starts_with(' ')) {
    text = rest.substr(1);
    return true;
  }
  bool number = true, tag = true, colour = true;
  for (const char c : inside) {
    number = number && is_digit(c);
    tag = tag && (is_digit(c) || c == ',');
    colour = colour && (is_digit(c) || c == ';' || c == 'm');
  }
  // A colour whose escape byte was lost on the way: [0;36m has no bracket to close it, see below.
  if (number && inside.size() >= 2 && inside.size() <= 6 && rest.starts_with(' ')) {
    text = rest.substr(1);
    return true;
  }
  if (tag && (rest.starts_with("<stdout>:") || rest.starts_with("<stderr>:"))) {
    text = rest.substr(9);
    return true;
  }
  if (name_length(inside, 80) == inside.size()) {
    std::string_view bar = rest;
    skip_spaces(bar);
    if (bar.starts_with("| ") && bar.size() < rest.size()) {
      text = bar.substr(2);
      return true;
    }
  }
  return false;
}

// `[0;36m` without its escape byte.
bool strip_bare_colour(std::string_view& text) {
  std::size_t at = 1;
  while (at < text.size() && at < 12 && (is_digit(text[at]) || text[at] == ';')) ++at;
  if (at < 2 || at >= text.size() || text[at] != 'm') return false;
  text.remove_prefix(at + 1);
  return true;
}

}  // namespace

bool strip_wrapper(std::string_view& text, Line& out) {
  if (text.empty()) return false;
  if (text.starts_with("\xEF\xBB\xBF")) {  // GitHub's files begin so
    text.remove_prefix(3);
    return true;
  }
  const char first = text[0];
  if (first == '[') return strip_bare_colour(text) || strip_bracket(text, out);
  if (first == ' ' || first == '|') {  // Buildkite's and exception groups' `  | `
    std::string_view rest = text.substr(0, 24);
    skip_spaces(rest);
    if (!rest.starts_with("| ")) return false;
    text.remove_prefix(text.find('|') + 2);
    return true;
  }
  if (text.starts_with("\xE2\x94\x82")) {  // │ … │ of a terminal
    text.remove_prefix(3);
    if (text.starts_with(' ')) text.remove_prefix(1);
    std::size_t end = text.find_last_not_of(' ');
    if (end != std::string_view::npos && end >= 2 && text.substr(end - 2, 3) == "\xE2\x94\x82") {
      text = text.substr(0, end - 2);
      end = text.find_last_not_of(' ');
      text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
    }
    return true;
  }
  if (text.starts_with("_bk;t=")) {
    const std::size_t end = text.find_first_not_of("0123456789", 6);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end);
    if (!text.empty() && text[0] == '\a') text.remove_prefix(1);
    return true;
  }
  if (is_digit(first)) {
    if (strip_stamp(text, out)) return true;
    std::size_t at = 0;  // `3: ` of srun -l and mpirun
    while (at < text.size() && at < 5 && is_digit(text[at])) ++at;
    if (at + 1 < text.size() && text[at] == ':' && text[at + 1] == ' ') {
      text.remove_prefix(at + 2);
      return true;
    }
  }
  const bool high = static_cast<unsigned char>(first) >= 0x80;
  if (!high && !is_name_char(first)) return false;
  double seconds = 0;
  if (const std::size_t stamp = syslog_stamp(text, seconds); stamp > 0 && stamp < text.size()) {
    std::string_view rest = text.substr(stamp);
    if (rest.starts_with(' ')) {
      rest.remove_prefix(1);
      if (strip_host_process(rest)) {
        take_outer(out, seconds, Origin::kDay);
        text = rest;
        return true;
      }
    }
  }
  const std::size_t name = name_length(text, 80);  // docker compose's `service-1  | `
  if (name > 0 && name < text.size() && text[name] == ' ') {
    std::string_view rest = text.substr(name);
    skip_spaces(rest);
    if (rest.starts_with("| ") || rest == "|") {
      text = rest.size() > 1 ? rest.substr(2) : std::string_view();
      return true;
    }
  }
  return false;
}

bool strip_json(std::string_view text, std::string& message) {
  if (text.size() < 12 || text.front() != '{' || text.size() >= kMaxLineBytes) return false;
  if (text.substr(0, 400).find("\":") == std::string_view::npos) return false;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return false;
  const auto word = [&](const nlohmann::json& in, const char* key) -> const std::string* {
    const auto it = in.find(key);
    return it != in.end() && it->is_string() ? it->get_ptr<const std::string*>() : nullptr;
  };
  const std::string* found = nullptr;
  for (const char* key : {"log", "message", "msg", "textPayload", "line"}) {
    if (!found) found = word(json, key);
  }
  if (const auto fields = json.find("fields");
      !found && fields != json.end() && fields->is_object()) {
    found = word(*fields, "message");
  }
  if (!found) return false;
  message.clear();
  const std::string* stamp = word(json, "timestamp");
  const std::string* level = word(json, "level");
  const std::string* target = word(json, "target");
  // Written again as the engine would have written it as text, so that one grammar does for both.
  if (stamp && level && target) {
    message = *stamp + (level->size() < 5 ? "  " : " ") + *level + " " + *target + ": ";
  } else if (const std::string* function = word(json, "function"); function && level) {
    message = *function + ": ";
  }
  message += *found;
  while (!message.empty() && (message.back() == '\n' || message.back() == '\r')) message.pop_back();
  return true;
}

}  // namespace warmgate::explain::internal
