// Outcomes of runs and verdicts over them. Never a bare bool.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/trace/event.h"

namespace warmgate::verdict {

inline constexpr const char* kTimeUnit = "s";

enum class Outcome { kPassed, kFailed, kCrashed, kHung, kIncomplete, kSkipped, kInfra };
enum class Verdict { kPass, kFail, kInconclusive, kInfra, kSkip };
std::string_view to_string(Outcome outcome);
std::string_view to_string(Verdict verdict);

/// What a figure is, for figures that trace/vocabulary does not know (metrics from data).
struct FigureInfo {
  std::string unit, direction;  // direction: lower | higher | ""
  std::string origin;           // file:line of the metric
};

/// {phase, kind, type, contract, frames}; id = first 12 hex of the SHA-256 of its canonical JSON.
struct Fingerprint {
  std::string phase, kind, type, contract;
  struct Frame {
    std::string function, file;
  };
  std::vector<Frame> frames;  // at most 3
  std::string id() const;
  nlohmann::json to_json() const;
};

/// What one worker did, as the harness saw it from outside.
struct WorkerEnd {
  int rank = 0;
  int pid = 0;
  bool exited = false;
  int exit_code = 0;          // if exited
  int signal = 0;             // else
  bool killed_by_us = false;  // SIGTERM or SIGKILL of ours came first
  bool needed_sigkill = false;
  std::int64_t peak_rss_bytes = 0;
  double wall_s = 0, cpu_s = 0;
};

/// Captured output of one worker: head, tail and the lines that look like a cause.
struct Output {
  int rank = 0;
  std::string stream;  // stdout | stderr
  std::uint64_t bytes = 0;
  std::string head, tail;
  std::vector<std::string> matched;
};

/// Everything about one run.
struct RunRecord {
  std::string scenario, scenario_path, variant, identity;
  int repeat = 0;
  Outcome outcome = Outcome::kInfra;
  std::string reason;            // one sentence: what decided the outcome
  std::string phase;             // where it broke; "" if it did not
  std::string signal_name;       // SIGSEGV …; "" = none
  std::optional<int> exit_code;  // of the first worker that failed
  int first_failed_rank = -1;
  std::string kind;  // oom, signal, exit, assert, exception, deadline, silence, protocol …
  std::vector<std::string> phases_ended;  // by every rank
  std::vector<contract::Result> contracts;
  struct AllowedFinding {
    contract::Finding finding;
    std::string reason, issue, where;
  };
  std::vector<AllowedFinding> allowed;            // findings that `allow` lists
  std::map<std::string, double> figures;          // absent = not observed
  std::map<std::string, FigureInfo> figure_info;  // of figures that came from metric files
  std::map<std::string, std::vector<std::string>>
      sets;  // keys_warmed, keys_launched, keys_invalid, skips, compiles_after_ready …
  std::vector<WorkerEnd> workers;
  std::vector<Output> outputs;
  nlohmann::json environment;  // record taken before the run, secrets masked
  std::optional<Fingerprint> fingerprint;
  std::string reproduce;  // one command
  bool time_gated = false, time_disturbed = false;
  double wall_s = 0;
  trace::Trace trace;
};

struct Check {  // one line of a verdict
  std::string
      what;  // "outcome", "figure kv_tokens", "contract keys-valid", "gate time_to_ready_s max"
  std::string expected, seen;
  Verdict verdict = Verdict::kPass;
  std::string note;
};

struct [[nodiscard]] RunVerdict {
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;
  std::vector<Check> checks;
};

/// Of several: the first present of FAIL, INFRA, INCONCLUSIVE, PASS; SKIP if there is nothing else.
[[nodiscard]] Verdict worst(const std::vector<Verdict>& verdicts);
/// The result of a contract by name; null if it was not judged.
const contract::Result* find_result(const RunRecord& run, std::string_view contract);
/// "A" of "A[tp=2]": the name that expect and allow use.
std::string base_name(std::string_view variant);
/// 9222468, 8.7952, 1.5e+12: no trailing zeros, every digit of an integer.
std::string number_text(double value);

}  // namespace warmgate::verdict
