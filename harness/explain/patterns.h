// Regular expressions, many at once: the only place that knows RE2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::explain::internal {

/// A numbered set of patterns that all begin at the start of the text. Bytes are bytes: `.` fits
/// any, and UTF-8 in a pattern fits the same UTF-8.
class PatternSet {
 public:
  PatternSet();
  ~PatternSet();
  PatternSet(PatternSet&&) noexcept;
  PatternSet& operator=(PatternSet&&) noexcept;

  /// "" and the pattern has the next number (from 0), or what is wrong with it.
  std::string add(const std::string& pattern);
  /// After the last add(). "" or what is wrong.
  std::string compile();

  int size() const;
  /// Names of a pattern's named groups, in the order of captures().
  const std::vector<std::string>& groups(int pattern) const;

  /// All patterns that match at the start of the text, ascending; one pass. Reentrant.
  void match(std::string_view text, std::vector<int>& found) const;
  /// What the named groups of one matching pattern took; an empty view with a null pointer for a
  /// group that took no part. False if the pattern does not match.
  bool capture(int pattern, std::string_view text, std::vector<std::string_view>& groups) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmgate::explain::internal
