// A string that is mostly held against literals. The library's comparison of the two walks the
// literal and then both; contracts ask hundreds of events dozens of times, so lengths come first.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace warmgate::trace {

class Word : public std::string {
 public:
  using std::string::string;
  Word() = default;
  Word(std::string text)  // NOLINT(google-explicit-constructor): a word is a string
      : std::string(std::move(text)) {}
  Word(std::string_view text)  // NOLINT(google-explicit-constructor)
      : std::string(text) {}

  template <std::size_t kSize>
  friend bool operator==(const Word& word, const char (&literal)[kSize]) {
    return word.size() == kSize - 1 && std::memcmp(word.data(), literal, kSize - 1) == 0;
  }
  template <std::size_t kSize>
  friend bool operator!=(const Word& word, const char (&literal)[kSize]) {
    return !(word == literal);
  }
};

}  // namespace warmgate::trace
