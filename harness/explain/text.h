// From bytes to lines to messages: what holds for every engine and every way of storing a log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "harness/explain/line.h"

namespace warmgate::explain::internal {

/// The first bytes of a line are kept, the rest of a longer one is passed over.
inline constexpr std::size_t kMaxLineBytes = 64 * 1024;

/// Cuts bytes into lines at '\n' and '\r'. Lines that lie whole in what is fed are not copied.
class Splitter {
 public:
  /// `line` gets the text without its end and the number of the '\n' line it stands in (from 1).
  template <typename F>
  void feed(std::string_view bytes, F&& line);
  template <typename F>
  void finish(F&& line);
  std::int64_t lines() const { return number_ - (at_start_ ? 1 : 0); }

 private:
  template <typename F>
  void parts(std::string_view text, F&& line);
  void keep(std::string_view bytes);

  std::string carry_;  // an unfinished line, at most kMaxLineBytes of it
  std::int64_t number_ = 1;
  bool at_start_ = true;
};

/// Takes colours, wrappers (docker, Kubernetes, journald, Buildkite, Ray, …, in any nesting),
/// process prefixes, times and levels off a line.
class TextLayer {
 public:
  /// `out` refers to `raw` and to memory of this object.
  void read(std::string_view raw, Line& out);
  using Knows = std::function<bool(std::string_view message)>;
  /// For a line (its text) that read() could not make sense of: looks for the engine's own prefix,
  /// or for what `knows` a message, further in, behind a wrapper that nobody knows, and remembers
  /// that wrapper for later lines. False if there is none.
  bool second_chance(std::string_view text, const Knows& knows, Line& out);

 private:
  std::string_view without_escapes(std::string_view raw);
  std::string_view without_learned(std::string_view text) const;
  void read_stripped(std::string_view text, Line& out);

  std::string scratch_, json_;
  std::string learned_;  // digits stand for any digit
};

/// One wrapper less; false if there is none at the start of `text`.
bool strip_wrapper(std::string_view& text, Line& out);
/// The message of a line that is one JSON object (docker's json-file, TGI and llama.cpp with JSON
/// output, cloud log exports); false if it is none of these.
bool strip_json(std::string_view text, std::string& message);
/// `(Worker_TP0 pid=31) `, `[2025-11-30 13:00:09 TP0] `, `INFO 07-02 …`: one less; false if none.
bool strip_prefix(std::string_view& text, Line& out);

/// Valid UTF-8 (what is not becomes U+FFFD) without control characters, at most `most` bytes.
std::string shown(std::string_view text, std::size_t most = 600);
/// The same, with what is a secret by its shape masked first: one that is cut, or whose digits are
/// replaced, is known no longer.
std::string shown_masked(std::string_view text, std::size_t most = 600);

/// A progress bar of tqdm or of its relatives.
struct Bar {
  std::int64_t done = 0, total = 0;
  double elapsed_s = kNoTime;
  std::string_view title;  // before the percentage
};
bool read_bar(std::string_view text, Bar& bar);
/// Where the first piece of a line with a bar glued to something ends; npos if nothing is glued.
std::size_t glued_after_bar(std::string_view text);

template <typename F>
void Splitter::parts(std::string_view text, F&& line) {
  while (true) {
    const std::size_t cr = text.find('\r');
    if (cr == std::string_view::npos) break;
    if (cr > 0) line(text.substr(0, cr), number_);
    text.remove_prefix(cr + 1);
  }
  line(text, number_);
}

inline void Splitter::keep(std::string_view bytes) {
  // A bar that is redrawn for hours without a '\n' must not push out what comes after it.
  carry_.append(bytes.substr(0, kMaxLineBytes - std::min(kMaxLineBytes, carry_.size())));
}

template <typename F>
void Splitter::feed(std::string_view bytes, F&& line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      // Finished parts of an unfinished line are handed over now: '\r' ends them as well.
      const std::size_t cr = bytes.rfind('\r');
      if (cr != std::string_view::npos) {
        keep(bytes.substr(0, cr));
        if (!carry_.empty()) parts(carry_, line);
        carry_.clear();
        bytes.remove_prefix(cr + 1);
      }
      keep(bytes);
      at_start_ = false;
      return;
    }
    const std::string_view text = bytes.substr(0, end);
    if (carry_.empty()) {
      parts(text.substr(0, kMaxLineBytes), line);
    } else {
      keep(text);
      parts(carry_, line);
      carry_.clear();
    }
    bytes.remove_prefix(end + 1);
    ++number_;
    at_start_ = true;
  }
}

template <typename F>
void Splitter::finish(F&& line) {
  if (!carry_.empty()) parts(carry_, line);
  carry_.clear();
}

}  // namespace warmgate::explain::internal
