// One short-lived helper program: bytes in, bytes out, deadline. Deliberately small: what watches
// engines lives in target/, which contracts may not use.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace warmgate::contract {

struct Finished {
  bool started = false;
  bool timed_out = false, too_much = false;
  int exit_code = -1, signal = 0;
  std::string out, err;  // err: its first 4 KiB
  std::string problem;   // why it did not start, or could not be waited for
};

/// Runs argv with `feed` as its stdin: feed returns the next piece, "" at the end. Kills the whole
/// group at the deadline or past `max_out` bytes of stdout, and in any case at the end.
Finished run_helper(const std::vector<std::string>& argv, const std::function<std::string()>& feed,
                    std::chrono::milliseconds deadline, std::size_t max_out);

}  // namespace warmgate::contract
