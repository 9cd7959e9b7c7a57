// What a worker printed, in bounded memory: its beginning, its end, and the lines in between that
// look like a cause. A worker that prints a gigabyte costs a second, not a gigabyte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verdict/verdict.h"

namespace warmgate::target {

/// True if the line holds a word that a cause is usually announced with (error, assert, traceback,
/// exception, fatal, killed, panic, abort, terminate, segfault, out of memory, bad_alloc …), in
/// either case.
bool looks_like_cause(std::string_view line);

/// A cheap filter before looks_like_cause(): false means that no line of `text` can match. Reads
/// gigabytes a second.
bool may_hold_cause(std::string_view text);

class Capture {
 public:
  static constexpr std::size_t kHeadBytes = 16 * 1024;
  static constexpr std::size_t kTailBytes = 32 * 1024;
  static constexpr std::size_t kMatchedLines = 100;  // the first half and the last half of them
  static constexpr std::size_t kLineBytes = 2000;    // of a matched line

  /// `secrets` must outlive the capture.
  explicit Capture(const std::vector<std::string>& secrets);
  void feed(std::string_view bytes);
  std::uint64_t bytes() const { return total_; }
  /// What turned out to be a secret by its shape; after finish().
  const std::vector<std::string>& found() const { return found_; }
  /// Head, tail (what follows the head, "" if the head holds all) and matched lines, masked.
  void finish(verdict::Output& out);

 private:
  void scan(std::string_view bytes);
  void line(std::string_view text);
  std::string masked(std::string_view text, std::size_t begin, std::size_t end);
  void keep_tail(std::string_view bytes);

  const std::vector<std::string>& secrets_;
  std::size_t margin_ = 0;  // longest secret: kept on both sides of a cut, so that none is halved
  std::uint64_t total_ = 0;
  std::string head_, tail_;
  std::string rest_;  // an unfinished line, at most kLineBytes + margin of it
  bool rest_cut_ = false;
  std::vector<std::string> first_, last_;  // as they came; masked at the end, when few are left
  std::vector<std::string> found_;
  std::size_t next_last_ = 0;
};

}  // namespace warmgate::target
