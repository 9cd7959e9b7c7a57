// The table that somebody who fixes a start-up regression gathers by hand: for each side of a
// comparison the outcome, where it failed, the time to each clock and phase, requests, capacity,
// speculation, latency, memory, the log around the fault. Built once, as data; every writer shows
// the same. What was not seen says why, and is never 0 or empty.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace warmgate::reports {

/// One run in numbers. An absent entry was not observed.
struct RunEvidence {
  std::map<std::string, double> clocks_s;  // process port health … → spawn to it, slowest rank
  std::map<std::string, double> phases_s;  // phase → time in it, all its occurrences, slowest rank
  std::optional<std::int64_t> requests_ok, requests_ended;
};
RunEvidence run_evidence(const verdict::RunRecord& run);

struct EvidenceCell {
  std::optional<double> value;  // of figures: the median of the runs that show it
  std::string text;             // for a person; "" = not observed
  std::string why;              // why it was not observed
  bool observed() const { return !text.empty(); }
};

struct EvidenceRow {
  std::string group;  // outcome clocks phases requests capacity speculation latency memory
  std::string name;   // for programs: a figure's name where there is one
  std::string label;  // for people
  std::string unit;   // of `value`; "" = the text alone counts
  std::vector<EvidenceCell> cells;  // as EvidenceTable::sides
  bool observed() const;            // by any side
};

/// Lines of a worker's output around its fault, as they were captured (masked).
struct LogExcerpt {
  std::size_t side = 0;
  std::string source;  // "rank 0 stderr", and from where
  std::vector<std::string> lines;
  std::optional<std::size_t> fault;  // which of them names it
};

struct EvidenceTable {
  std::vector<std::string> sides;  // names of variants
  std::vector<EvidenceRow> rows;
  std::vector<LogExcerpt> excerpts;  // of sides that did not pass
};

inline constexpr std::size_t kExcerptLines = 12;
inline constexpr std::size_t kExcerptColumns = 200;

EvidenceTable evidence_of(const ScenarioReport& scenario);

/// What was not observed, a line for each reason: `labels` of rows, the sides, why.
struct Unseen {
  std::vector<std::string> labels;
  std::vector<std::size_t> sides;
  std::string why;
};
std::vector<Unseen> unseen(const EvidenceTable& table);

/// {sides, rows: [{group, name, label, unit, cells: [{value, text, not_observed}]}], excerpts}
nlohmann::ordered_json evidence_json(const EvidenceTable& table);
/// {clocks_s, phases_s, requests_ok, requests_ended}; null for what was not observed.
nlohmann::ordered_json run_evidence_json(const verdict::RunRecord& run);

}  // namespace warmgate::reports
