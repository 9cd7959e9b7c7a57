// stdout and stderr as a report meets them: terminals or not, with or without colour and UTF-8,
// gone half-way (a closed pipe) or full.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/command_line.h"
#include "reports/printer.h"

namespace warmgate::cli {

/// How a stream is to be written to, from the user's choice and the environment: NO_COLOR, TERM,
/// COLUMNS, LC_ALL, LC_CTYPE, LANG. `--color always` outweighs NO_COLOR.
struct StreamFacts {
  bool terminal = false;
  int columns = 0;  // of the terminal; 0 = unknown
};
reports::Style style_for(const StreamFacts& facts, ColourChoice choice);

class Console {
 public:
  explicit Console(ColourChoice choice);

  void out(std::string_view text);
  /// Whatever is said here is masked: what know() was told, and what is a secret by its shape.
  void err(std::string_view text);
  /// Values that nothing written from now on may show, in every spelling.
  void know(const std::vector<std::string>& secrets);
  const std::vector<std::string>& secrets() const { return secrets_; }
  /// "warmgate: <text>" on stderr.
  void complain(std::string_view text);
  const reports::Style& out_style() const { return out_style_; }
  const reports::Style& err_style() const { return err_style_; }
  bool err_is_terminal() const { return err_terminal_; }
  /// What went wrong with writing to stdout; "" if nothing did, or if the reader just went away.
  const std::string& out_error() const { return out_error_; }

 private:
  reports::Style out_style_, err_style_;
  bool err_terminal_ = false;
  bool out_gone_ = false;
  std::string out_error_;
  std::vector<std::string> secrets_;
};

/// Makes descriptors 0, 1 and 2 exist (a closed one would be given to the next file opened) and a
/// closed pipe an error code instead of a signal. First thing in main().
void prepare_standard_streams();

}  // namespace warmgate::cli
