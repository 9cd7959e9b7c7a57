// Metrics and contracts from outside the tree. A metric is a line of data, a contract any
// executable; neither needs C++.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/scenario/scenario.h"
#include "harness/trace/event.h"
#include "harness/trace/vocabulary.h"
#include "harness/verdict/verdict.h"

namespace warmgate::run {

/// A figure of the user's own: where its value is found, its unit, which way is better.
struct Metric {
  std::string name, unit, meaning;
  trace::Direction better = trace::Direction::kNone;
  /// Exactly one source. `log`: a pattern with a group `(?<value>…)`, held against captured output
  /// line by line; the last match counts. `event` with `pointer`: a field of the last such event
  /// (JSON pointer into the line). `prometheus`: the name of a sample; only servers have those.
  std::optional<std::regex> log;
  std::size_t log_group = 1;
  std::string event, pointer, prometheus;
};

/// The value, or nothing where no line, event or sample gave one: never zero.
std::optional<double> measure(const Metric& metric, const trace::Trace& trace,
                              const std::vector<verdict::Output>& outputs);

struct Extras {
  std::vector<Metric> metrics;
  std::vector<contract::ExternalContract> contracts;
};

/// Reads metric files (`metrics: [{name, unit, direction, log | event + pointer | prometheus}]`)
/// and contract files (contract/external.h). Throws ScenarioError with what is wrong.
Extras load_extras(const std::vector<std::filesystem::path>& metrics,
                   const std::vector<std::filesystem::path>& contracts);

/// ECMAScript has no named groups: rewrites `(?<value>…)` and `(?P<value>…)` to a plain group and
/// gives its number. Throws std::runtime_error where there is no such group.
std::pair<std::string, std::size_t> plain_pattern(const std::string& pattern);

}  // namespace warmgate::run
