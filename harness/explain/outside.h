// Causes outside the engine, told by the words that systems use for them: a signal, the OOM killer,
// a busy port, a full disk, memory that somebody else holds, a driver that does not fit, a network.
// The words are data: fixtures/outside/*.yaml.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/explain/reader.h"
#include "harness/scenario/problems.h"

namespace warmgate::explain {

struct OutsideRule {
  std::string name;    // port-busy, oom-killer …
  std::string reason;  // a clause: "the port is taken by another process"
  std::string advice;  // what to look at; may be ""
  bool certain = false;
  /// Globs over one line's message; a rule may instead, or also, hold for how the process ended.
  std::vector<std::string> text;
  std::vector<int> exit_codes, signals;
  /// May stand in any line that the log grammar has no place for: words that nothing else says.
  bool anywhere = false;
  /// A log's lines that show it; the tests read them.
  std::vector<std::string> examples;
  /// Globs of root frames' functions, where the words alone say too little; empty = any.
  std::vector<std::string> function;
};

struct OutsideCause {
  const OutsideRule* rule = nullptr;
  bool is_root = false;  // the root exception itself says it
  int source = -1;       // -1: not from a line, but from how the process ended
  std::int64_t line = 0;
  std::string text;
  /// It stands behind the first cause of the log: a consequence or a coincidence.
  bool after_failure = false;
};

class OutsideRules {
 public:
  /// Every *.yaml of a folder. Problems are added, and what is right is kept.
  void read_folder(const std::filesystem::path& folder, scenario::Problems& problems);
  /// What of it a log shows: what counts first, in the order of the log; at most one a rule. The
  /// causes point into this object.
  std::vector<OutsideCause> find(const Reading& reading, const Ending& ending) const;
  const std::vector<OutsideRule>& rules() const { return rules_; }

 private:
  std::vector<OutsideRule> rules_;
};

}  // namespace warmgate::explain
