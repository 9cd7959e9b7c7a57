#include "harness/explain/version.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace warmgate::explain {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Digits at the start of `text`, taken off it; -1 if there are none. More than nine are cut.
long take_number(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && digit(text[end])) ++end;
  if (end == 0) return -1;
  long value = 0;
  for (const char c : text.substr(0, std::min<std::size_t>(end, 9))) value = value * 10 + (c - '0');
  text.remove_prefix(end);
  return value;
}

int sign(long difference) { return difference < 0 ? -1 : difference > 0 ? 1 : 0; }

}  // namespace

std::optional<Version> Version::parse(std::string_view text) {
  if (!text.empty() && (text[0] == 'v' || text[0] == 'V' || text[0] == 'b')) text.remove_prefix(1);
  Version out;
  for (long number = take_number(text); number >= 0; number = take_number(text)) {
    out.release_.push_back(number);
    if (text.size() < 2 || text[0] != '.' || !digit(text[1]) || out.release_.size() >= 6) break;
    text.remove_prefix(1);
  }
  if (out.release_.empty()) return std::nullopt;
  for (;;) {
    while (!text.empty() && (text[0] == '.' || text[0] == '-' || text[0] == '_'))
      text.remove_prefix(1);
    struct Word {
      std::string_view word;
      int stage;
    };
    static constexpr std::array<Word, 7> kWords = {
        {{"dev", -3}, {"alpha", -2}, {"beta", -1}, {"rc", -1}, {"post", 1}, {"a", -2}, {"b", -1}}};
    const auto word = std::find_if(kWords.begin(), kWords.end(),
                                   [&](const Word& w) { return text.rfind(w.word, 0) == 0; });
    if (word == kWords.end()) break;
    text.remove_prefix(word->word.size());
    const long number = std::max(0L, take_number(text));
    if (word->stage != -3) {
      out.stage_ = word->stage;
      out.number_ = number;
    } else if (out.stage_ == 0) {
      out.stage_ = -3;
      out.number_ = number;
    } else {
      out.dev_ = number;  // rc1.dev77 is older than rc1
    }
  }
  return out;
}

int Version::compare(const Version& other) const {
  for (std::size_t i = 0; i < std::max(release_.size(), other.release_.size()); ++i) {
    const long mine = i < release_.size() ? release_[i] : 0;
    const long theirs = i < other.release_.size() ? other.release_[i] : 0;
    if (mine != theirs) return sign(mine - theirs);
  }
  if (stage_ != other.stage_) return sign(stage_ - other.stage_);
  if (number_ != other.number_) return sign(number_ - other.number_);
  if ((dev_ < 0) != (other.dev_ < 0)) return dev_ < 0 ? 1 : -1;
  return sign(dev_ - other.dev_);
}

std::optional<VersionRange> VersionRange::parse(std::string_view text, std::string& why) {
  VersionRange out;
  out.text_ = std::string(text);
  out.any_.emplace_back();
  while (true) {
    while (!text.empty() && (text[0] == ' ' || text[0] == ',')) text.remove_prefix(1);
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(word.size());
    if (word == "or") {
      if (out.any_.back().empty()) break;
      out.any_.emplace_back();
      continue;
    }
    std::size_t at = 0;
    Op op = Op::kEqual;
    if (word.rfind(">=", 0) == 0) {
      op = Op::kGreaterEqual, at = 2;
    } else if (word.rfind("<=", 0) == 0) {
      op = Op::kLessEqual, at = 2;
    } else if (word.rfind("==", 0) == 0) {
      op = Op::kEqual, at = 2;
    } else if (word.rfind(">", 0) == 0) {
      op = Op::kGreater, at = 1;
    } else if (word.rfind("<", 0) == 0) {
      op = Op::kLess, at = 1;
    } else {
      why = "expected >, >=, <, <= or == before '" + std::string(word.substr(0, 40)) + "'";
      return std::nullopt;
    }
    const std::optional<Version> version = Version::parse(word.substr(at));
    if (!version) {
      why = "'" + std::string(word.substr(at, 40)) + "' is no version; write e.g. 0.26.0";
      return std::nullopt;
    }
    out.any_.back().push_back({op, *version});
  }
  if (out.any_.back().empty()) {
    why = "expected conditions such as '>=0.10.2 <0.11'";
    return std::nullopt;
  }
  return out;
}

bool VersionRange::holds(const Version& version) const {
  return std::any_of(any_.begin(), any_.end(), [&](const std::vector<Condition>& all) {
    return std::all_of(all.begin(), all.end(), [&](const Condition& condition) {
      const int order = version.compare(condition.version);
      switch (condition.op) {
        case Op::kGreater:
          return order > 0;
        case Op::kGreaterEqual:
          return order >= 0;
        case Op::kLess:
          return order < 0;
        case Op::kLessEqual:
          return order <= 0;
        case Op::kEqual:
          return order == 0;
      }
      return false;
    });
  });
}

}  // namespace warmgate::explain
