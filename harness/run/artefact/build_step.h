// Runs one command of a build: its output into a log, its whole group ended with it, and a failure
// that names the command and its last lines.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/target/target.h"

namespace warmgate::run {

/// A build that failed, or was cancelled: one line for a person.
class BuildError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct BuildStep {
  std::vector<std::string> argv;
  std::filesystem::path cwd;
  std::filesystem::path log;               // appended to; stdout and stderr
  std::map<std::string, std::string> env;  // over ours
  std::vector<std::string> without;        // variables of ours that it does not get
  double deadline_s = 3600;
  /// Looked at while it runs: a text ends it with that reason. May be empty.
  std::function<std::string()> watch;
  /// In messages instead of argv, where that holds what may not be shown; "" = argv.
  std::string shown_as;
};

/// Throws BuildError where it cannot be started, does not end with 0, is past its deadline or
/// cancelled: "`pip install x.whl` ended with 1: …last lines… (all of it in LOG)".
void run_step(const BuildStep& step, const target::CancelToken& cancel);

/// The same, and what it wrote to stdout (at most 1 MiB); stderr goes to the message. `log` is not
/// used.
std::string output_of(const BuildStep& step, const target::CancelToken& cancel);

/// The last lines of a text that are not empty, joined by " | ", at most `most` bytes of them.
std::string last_lines(std::string_view text, std::size_t lines, std::size_t most);

}  // namespace warmgate::run
