// How a server was started, as far as its log says: its command line where somebody printed it,
// else the arguments that it prints of itself.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::explain {

struct Launch {
  std::string engine;  // vllm, sglang, llamacpp, trtllm, lmdeploy, tgi
  std::string model;   // "" = not said
  /// Without program, model, host and port.
  std::vector<std::string> args;
  /// The program and its fixed words, e.g. {"vllm", "serve"}; empty where only arguments are known.
  std::vector<std::string> program;
  /// What the log says that an argument cannot hold (an object, a secret): left out, by name.
  std::vector<std::string> left_out;
  std::string from;  // in words: "the command line in the log", "non-default args"
  bool found() const { return !from.empty(); }
};

/// Looks for it in the first lines of a log. Cheap: a few exact words are searched for, and nothing
/// is looked at behind kMost bytes.
class LaunchFinder {
 public:
  static constexpr std::size_t kMost = 4 * 1024 * 1024;
  void feed(std::string_view bytes);
  /// What another finder found in another log of the same start.
  void adopt(LaunchFinder&& other);
  /// The best that was found; `engine` = the one that the log was recognised as, "" = any.
  Launch take(const std::string& engine);

 private:
  void line(std::string_view text);
  void offer(Launch launch, int rank);
  /// Of a struct that is printed over many lines: takes the line if it is one of its.
  bool block_line(std::string_view text);
  void close_block();
  std::string rest_, block_;
  int block_lines_ = 0;
  std::size_t seen_ = 0;
  struct Found {
    Launch launch;
    int rank;
  };
  std::vector<Found> found_;
};

/// A command line as a shell splits it: blanks, quotes, backslashes; nothing is expanded. Ends at
/// an unquoted | ; & > or #. Empty if a quote is not closed.
std::vector<std::string> shell_words(std::string_view text);

}  // namespace warmgate::explain
