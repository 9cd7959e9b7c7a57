// From measured starts to the numbers that a Kubernetes manifest needs: how long a container may
// take to become ready before it is killed, and how long to end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace warmgate::run {

/// Clocks of the runs that passed, seconds from the start of the process, ascending.
struct MeasuredStarts {
  std::map<std::string, std::vector<double>> clocks;  // health, port, first_token … → one a run
  std::vector<double> shutdown;                       // seconds in phase shutdown
  std::size_t passed = 0, others = 0;  // runs that passed; that did not, and are left out
  std::size_t disturbed = 0;           // of those that passed: other runs went beside them
  std::vector<std::string> sources;    // "scenario variant", each once
  std::vector<std::string> repeated;   // reports that were given twice, in words
};

/// Reads JSON reports, or folders that --keep wrote. `variant` (or its name without the matrix)
/// picks; without it there may be only one scenario and variant in them. Throws ScenarioError
/// naming the file.
MeasuredStarts read_starts(const std::vector<std::filesystem::path>& reports,
                           const std::string& variant);

/// What so many starts say of the slowest of a hundred.
struct Quantile {
  std::size_t n = 0;
  double median = 0, worst = 0;
  double p99 = 0;        // the 99th of a hundred from n = 100 on, else the worst
  bool is_worst = true;  // p99 is the worst of fewer than a hundred
  /// With 95 % confidence no more than this part of all starts takes longer than the worst seen:
  /// 1 - 0.05^(1/n).
  double unseen = 1;
};
/// Of at least one value, ascending.
Quantile quantile(const std::vector<double>& values);

/// Starts that it takes to say with 95 % confidence that 99 of 100 are no slower than the slowest.
inline constexpr std::size_t kStartsForP99 = 299;

struct ProbeValues {
  std::string clock;  // the one that the values come from
  Quantile ready;
  double headroom = 2;  // factor on the measured time
  double budget_s = 0;  // what the startup probe allows
  int period_s = 10, failure_threshold = 1;
  int liveness_delay_s = 0;  // where there is no startup probe
  int grace_s = 30;
  bool grace_measured = false;
  int progress_deadline_s = 600;
  std::vector<std::string> notes;  // what these runs cannot say
};

/// Throws std::runtime_error if no run reached a clock of readiness.
ProbeValues probe_values(const MeasuredStarts& starts);

/// As YAML for a container and its pod.
std::string probe_yaml(const ProbeValues& values);

}  // namespace warmgate::run
