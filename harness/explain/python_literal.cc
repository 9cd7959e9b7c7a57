#include "harness/explain/python_literal.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

namespace warmgate::explain {
namespace {

constexpr int kMostDepth = 12;
constexpr std::size_t kMostPairs = 1000;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<std::pair<std::string, std::string>> pairs() {
    std::vector<std::pair<std::string, std::string>> out;
    if (at_end() || (peek() != '{' && peek() != '(' && peek() != ' ')) return out;
    const bool bare = peek() == ' ';  // "with config: model='x', …" has no bracket
    const char close = peek() == '{' ? '}' : ')';
    ++at_;
    while (out.size() < kMostPairs) {
      blanks();
      if (at_end() || (!bare && peek() == close)) break;
      std::string key;
      if (peek() == '\'' || peek() == '"') {
        if (!quoted(key)) break;
      } else {
        while (!at_end() &&
               (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_'))
          key += text_[at_++];
      }
      blanks();
      if (key.empty() || at_end() || (peek() != ':' && peek() != '=')) break;
      ++at_;
      blanks();
      const std::size_t begin = at_;
      const auto value = this->value(0);
      if (value) {
        out.emplace_back(key, shown(*value));
      } else {
        at_ = begin;
        out.emplace_back(key, std::string(kPythonObject));
        if (!skip_object()) break;
      }
      blanks();
      if (at_end() || peek() != ',') break;
      ++at_;
    }
    return out;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  void blanks() {
    while (!at_end() && std::isspace(static_cast<unsigned char>(peek())) != 0) ++at_;
  }

  static std::string shown(const nlohmann::json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
    if (value.is_null()) return "None";
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  bool quoted(std::string& out) {
    const char quote = text_[at_++];
    while (!at_end() && peek() != quote) {
      if (peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (at_end()) return false;
    ++at_;
    return true;
  }

  std::optional<nlohmann::json> sequence(char close, int depth) {
    nlohmann::json out = nlohmann::json::array();
    ++at_;
    for (;;) {
      blanks();
      if (at_end()) return std::nullopt;
      if (peek() == close) break;
      auto item = value(depth + 1);
      if (!item || out.size() >= kMostPairs) return std::nullopt;
      out.push_back(std::move(*item));
      blanks();
      if (!at_end() && peek() == ',') ++at_;
    }
    ++at_;
    return out;
  }

  std::optional<nlohmann::json> dictionary(int depth) {
    nlohmann::json out = nlohmann::json::object();
    ++at_;
    for (;;) {
      blanks();
      if (at_end()) return std::nullopt;
      if (peek() == '}') break;
      const auto key = value(depth + 1);
      blanks();
      if (!key || !key->is_primitive() || at_end() || peek() != ':') return std::nullopt;
      ++at_;
      blanks();
      auto item = value(depth + 1);
      if (!item || out.size() >= kMostPairs) return std::nullopt;
      out[shown(*key)] = std::move(*item);
      blanks();
      if (!at_end() && peek() == ',') ++at_;
    }
    ++at_;
    return out;
  }

  std::optional<nlohmann::json> value(int depth) {
    if (at_end() || depth > kMostDepth) return std::nullopt;
    if (peek() == '\'' || peek() == '"') {
      std::string text;
      if (!quoted(text)) return std::nullopt;
      return nlohmann::json(text);
    }
    if (peek() == '[') return sequence(']', depth);
    if (peek() == '(') return sequence(')', depth);
    if (peek() == '{') return dictionary(depth);
    std::string word;
    while (!at_end() && (std::isalnum(static_cast<unsigned char>(peek())) != 0 ||
                         std::string_view("._+-").find(peek()) != std::string_view::npos))
      word += text_[at_++];
    if (word == "True" || word == "False") return nlohmann::json(word == "True");
    if (word == "None") return nlohmann::json(nullptr);
    // torch.bfloat16 is what `--dtype bfloat16` became.
    if (word.rfind("torch.", 0) == 0) return nlohmann::json(word.substr(6));
    const auto number = nlohmann::json::parse(word, nullptr, false);
    if (number.is_number()) return number;
    return std::nullopt;
  }

  // Over <…>, Name(…) and the like, to the comma or bracket behind it; false at the end of the
  // text.
  bool skip_object() {
    int depth = 0;
    while (!at_end()) {
      const char c = peek();
      if (c == '\'' || c == '"') {
        std::string ignored;
        if (!quoted(ignored)) return false;
        continue;
      }
      if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
      if (c == ')' || c == ']' || c == '}' || c == '>') {
        if (depth == 0) return true;
        --depth;
      }
      if (c == ',' && depth == 0) return true;
      ++at_;
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> python_dict(std::string_view text) {
  return Parser(text).pairs();
}

}  // namespace warmgate::explain
