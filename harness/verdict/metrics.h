// Metrics as data: a figure that a line of YAML describes, without C++. A file is one mapping or a
// list of them:
//
//   {name: weights_gib, source: log,     pattern: "weights took (?<value>[0-9.]+) GiB",
//    unit: GiB, direction: lower}
//   {name: accepted,    source: counter, pattern: spec_accepted_tokens, unit: tokens,
//    direction: higher}
//   {name: swa_bytes,   source: json,    event: kv, pointer: /groups/1/bytes, unit: bytes}
//
// log: captured output, line by line, ECMAScript with one named group `value`; the last match
// counts. counter: the `counter` event of that name. json: a JSON pointer into the last event of
// that kind, or, without `event`, into the last line of output that is a JSON object and has it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

struct Metric {
  enum class Source { kLog, kCounter, kJson };
  std::string name;
  Source source = Source::kLog;
  std::string pattern;         // log: the expression as written; counter: the counter's name
  std::string event, pointer;  // json
  std::string stream;          // log: stdout | stderr; "" = both
  std::string unit, direction;
  std::string origin;      // file:line
  std::string expression;  // log: pattern without group names, as std::regex takes it
  std::size_t group = 0;   // log: number of the group `value`
};

/// Throws scenario::ScenarioError with every problem of the file: unknown keys, a name that a
/// built-in figure has, an expression that is none or lacks the group, an illegal pointer.
std::vector<Metric> load_metrics(const std::filesystem::path& file);

/// Adds the figures that were found, with unit and direction. What is not found stays absent.
/// Lines are read up to 1024 bytes: the expression comes from outside, the line from a worker.
void apply_metrics(const std::vector<Metric>& metrics, RunRecord& run);

/// `a(?<value>b)(c)` → {"a(b)(c)", 1}; `(?P<value>` is understood too. Group 0 = no such group.
struct NamedGroup {
  std::string expression;
  std::size_t group = 0;
};
NamedGroup strip_group_names(const std::string& pattern, const std::string& name);

}  // namespace warmgate::verdict
