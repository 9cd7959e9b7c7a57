// Versions of engines as they print them: 0.10.2, 0.26.1rc1.dev77+g6f91edf96, 0.4.6.post3, b9803.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::explain {

/// An order over versions: development builds and release candidates come before their release,
/// `.post` after it; what follows `+` or stands in brackets or after a blank does not count.
class Version {
 public:
  /// Nothing for a text that does not begin with a number (after `v` or llama.cpp's `b`).
  static std::optional<Version> parse(std::string_view text);
  /// Negative, 0 or positive, as *this is older than, equal to or newer than `other`.
  int compare(const Version& other) const;

 private:
  std::vector<long> release_;
  // -3 dev, -2 a, -1 b or rc, 0 release, 1 post; with its number; a dev build of it comes before.
  int stage_ = 0;
  long number_ = 0;
  long dev_ = -1;  // -1 = none
};

/// `>=0.10.2 <0.11`: all of the conditions, each >, >=, <, <= or == and a version. Several ranges
/// are joined by `or`.
class VersionRange {
 public:
  /// Nothing, with `why` set, for a text that is no range.
  static std::optional<VersionRange> parse(std::string_view text, std::string& why);
  bool holds(const Version& version) const;
  const std::string& text() const { return text_; }

 private:
  enum class Op { kGreater, kGreaterEqual, kLess, kLessEqual, kEqual };
  struct Condition {
    Op op;
    Version version;
  };
  std::vector<std::vector<Condition>> any_;
  std::string text_;
};

}  // namespace warmgate::explain
