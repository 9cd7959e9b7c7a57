#include "harness/explain/grammar.h"

namespace warmgate::explain::internal {

const std::vector<std::string>& phase_names() {
  static const std::vector<std::string> names = {
      "bootstrap", "load", "profile", "kv", "warmup", "capture", "ready", "serve", "shutdown"};
  return names;
}

std::string_view to_string(Sort sort) {
  switch (sort) {
    case Sort::kNone:
      return "";
    case Sort::kProgress:
      return "progress";
    case Sort::kSkip:
      return "skip";
    case Sort::kSwallowed:
      return "swallowed";
    case Sort::kCause:
      return "cause";
    case Sort::kEcho:
      return "echo";
    case Sort::kVictim:
      return "victim";
    case Sort::kOutside:
      return "outside";
    case Sort::kNoise:
      return "noise";
    case Sort::kHang:
      return "hang";
    case Sort::kCompile:
      return "compile";
    case Sort::kWaiting:
      return "waiting";
    case Sort::kDetail:
      return "detail";
    case Sort::kSurvived:
      return "survived";
    case Sort::kServing:
      return "serving";
    case Sort::kShutdown:
      return "shutdown";
    case Sort::kSorts:
      break;
  }
  return "";
}

double Grammar::patience(std::string_view phase) const {
  auto it = patience_s.find(phase);
  if (it == patience_s.end()) it = patience_s.find("any");
  return it == patience_s.end() ? 100 : it->second;
}

int Grammar::figure(std::string_view name) const {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

namespace {

bool word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// "" if there is no such macro.
std::string macro(std::string_view kind) {
  if (kind == "num") return R"(-?\d[\d,]*(?:\.\d+)?)";
  if (kind == "int") return R"(\d[\d,]*)";
  if (kind == "word") return R"(\S+)";
  if (kind == "text") return R"(.*?)";
  // A Python exception's type as it stands before its message.
  if (kind == "exc") return R"((?:[A-Za-z_][\w.]*: )?)";
  return "";
}

}  // namespace

std::string expand_pattern(std::string_view pattern, std::string& error) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c == '\\' && at + 1 < pattern.size()) {
      out += pattern.substr(at, 2);
      at += 2;
      continue;
    }
    const bool name =
        c == '{' && at + 1 < pattern.size() && pattern[at + 1] >= 'a' && pattern[at + 1] <= 'z';
    if (!name) {
      out += c;
      ++at;
      continue;
    }
    std::size_t end = at + 1, colon = 0;
    while (end < pattern.size() && (word_char(pattern[end]) || pattern[end] == ':')) {
      if (pattern[end] == ':') colon = end;
      ++end;
    }
    if (end >= pattern.size() || pattern[end] != '}') {
      error = "a { without its }";
      return out;
    }
    const std::string_view kind =
        pattern.substr(colon ? colon + 1 : at + 1, end - (colon ? colon + 1 : at + 1));
    const std::string body = macro(kind);
    if (body.empty()) {
      error = "{" + std::string(kind) + "}: there are num, int, word, text and exc";
      return out;
    }
    if (colon) {
      out += "(?P<" + std::string(pattern.substr(at + 1, colon - at - 1)) + ">" + body + ")";
    } else {
      out += "(?:" + body + ")";
    }
    at = end + 1;
  }
  return out;
}

}  // namespace warmgate::explain::internal
