#include "reports/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/contract/view.h"
#include "harness/trace/vocabulary.h"
#include "reports/log_excerpt.h"
#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Outcome;
using verdict::RunRecord;

constexpr const char* kClocks[] = {"process",     "port",    "health", "models",
                                   "first_token", "capture", "steady"};

// The rows: what a figure is called, and from when on it can be known.
struct Wanted {
  const char *group, *name, *label, *since, *kind;
};
constexpr Wanted kWanted[] = {
    {"capacity", "kv_bytes", "KV cache", "kv", "kv"},
    {"capacity", "kv_tokens", "KV tokens", "kv", "kv"},
    {"capacity", "kv_blocks", "KV blocks", "kv", "kv"},
    {"capacity", "concurrency", "concurrency", "kv", "kv"},
    {"speculation", "drafts", "drafts", "serve", "counter"},
    {"speculation", "draft_tokens", "draft tokens", "serve", "counter"},
    {"speculation", "accepted_tokens", "accepted", "serve", "counter"},
    {"latency", "ttft_first_ms", "first request: first token", "serve", "request"},
    {"latency", "ttft_second_ms", "second request: first token", "serve", "request"},
    {"latency", "ttft_third_ms", "third request: first token", "serve", "request"},
    {"latency", "ttft_ms", "steady: first token", "serve", "request"},
    {"latency", "inter_token_ms", "steady: between tokens", "serve", "request"},
    {"latency", "request_ms", "steady: whole request", "serve", "request"},
    {"memory", "profile_peak_bytes", "device peak, profiling", "profile", "phase_end"},
    {"memory", "serve_peak_bytes", "device peak, serving", "serve", "phase_end"},
    {"memory", "peak_rss_bytes", "host peak", "", "process_end"},
};

// One side of the table.
class Side {
 public:
  explicit Side(const VariantReport& variant) : variant_(variant), telling_(telling_run(variant)) {
    for (const RunRecord* run : variant.runs) evidence_.push_back(run_evidence(*run));
    if (!telling_) return;
    for (const trace::Event& e : telling_->trace.events) {
      if (e.ev != "fault") continue;
      const bool mine =
          telling_->first_failed_rank < 0 || e.rank == telling_->first_failed_rank || !e.rank;
      if (!fault_ || (mine && !fault_is_mine_)) fault_ = &e;
      fault_is_mine_ = fault_is_mine_ || mine;
      if (fault_is_mine_) break;
    }
    kinds_ = telling_->trace.emits();
    for (const trace::Event& e : telling_->trace.events) {
      if (e.ev == "phase_begin") begun_.emplace(contract::text(e, "phase"));
    }
  }

  const VariantReport& variant() const { return variant_; }
  const RunRecord* telling() const { return telling_; }
  const std::vector<RunEvidence>& evidence() const { return evidence_; }
  bool broke() const {
    return telling_ && telling_->outcome != Outcome::kPassed &&
           telling_->outcome != Outcome::kSkipped;
  }

  EvidenceCell outcome() const {
    if (!telling_) return missing("it was not run");
    const std::string disagreement = disagreement_text(variant_);
    return {{}, disagreement.empty() ? outcome_text(*telling_) : disagreement, ""};
  }
  EvidenceCell phase() const {
    if (!broke()) return nothing_failed();
    if (telling_->phase.empty()) return missing("no phase had begun");
    return {{}, telling_->phase, ""};
  }
  EvidenceCell error() const {
    if (!broke()) return nothing_failed();
    if (fault_) {
      const std::string type = fault_->str("type"), message = fault_->str("message");
      const std::string text =
          type + (type.empty() || message.empty() ? "" : ": ") + message.substr(0, 400);
      if (!text.empty()) return {{}, text, ""};
    }
    if (!telling_->reason.empty()) return {{}, telling_->reason, ""};
    return missing("nobody reported a fault");
  }
  // Function and file of the fault; of a broken contract what its fingerprint names.
  EvidenceCell frame() const {
    if (!broke()) return nothing_failed();
    if (fault_ && !fault_->str("function").empty()) {
      std::string text = fault_->str("function");
      if (const std::string file = fault_->str("file"); !file.empty()) {
        text += " (" + file;
        if (const std::int64_t line = fault_->num("line"); line > 0)
          text += fmt::format(":{}", line);
        text += ")";
      }
      return {{}, text, ""};
    }
    if (telling_->fingerprint && !telling_->fingerprint->frames.empty()) {
      const auto& frame = telling_->fingerprint->frames.front();
      std::string text = frame.function;
      if (!frame.file.empty())
        text += (text.empty() ? "" : " (") + frame.file + (text.empty() ? "" : ")");
      if (!text.empty()) return {{}, text, ""};
    }
    return missing(fault_ ? "the fault names no function" : "nobody reported a fault");
  }
  EvidenceCell worker() const {
    if (!broke()) return nothing_failed();
    if (telling_->first_failed_rank < 0) return missing("no worker failed by itself");
    std::string text = fmt::format("rank {}", telling_->first_failed_rank);
    if (!telling_->signal_name.empty()) {
      text += ", " + telling_->signal_name;
    } else if (telling_->exit_code) {
      text += fmt::format(", exit code {}", *telling_->exit_code);
    }
    return {{}, text, ""};
  }

  EvidenceCell figure(const Wanted& wanted) const {
    std::vector<double> values;
    std::string unit;
    for (const RunRecord* run : variant_.runs) {
      const auto it = run->figures.find(wanted.name);
      if (it == run->figures.end() || !std::isfinite(it->second)) continue;
      values.push_back(it->second);
      const auto info = run->figure_info.find(wanted.name);
      if (info != run->figure_info.end()) unit = info->second.unit;
    }
    if (values.empty()) return missing(why(wanted.since, wanted.kind));
    return number(std::move(values), [&](double value) {
      const trace::FigureRule* rule = trace::find_figure(wanted.name);
      if (rule && rule->unit == "ms") return duration_text(value / 1e3);
      return figure_text(wanted.name, value, unit, false);
    });
  }

  EvidenceCell time(const std::map<std::string, double> RunEvidence::*which,
                    const std::string& name, const std::string& since, const char* kind) const {
    std::vector<double> values;
    for (const RunEvidence& one : evidence_) {
      const auto it = (one.*which).find(name);
      if (it != (one.*which).end()) values.push_back(it->second);
    }
    if (values.empty() && broke() && name == telling_->phase) return missing("it ended in " + name);
    if (values.empty()) return missing(why(since, kind));
    return number(std::move(values), duration_text);
  }

  EvidenceCell requests() const {
    std::vector<double> values;
    std::string text;
    for (const RunEvidence& one : evidence_) {
      if (!one.requests_ok) continue;
      values.push_back(static_cast<double>(*one.requests_ok));
      const std::int64_t all =
          std::max(variant_.requests.value_or(0), one.requests_ended.value_or(0));
      const std::string now = fmt::format("{} of {}", *one.requests_ok, all);
      // The least of the repeats: the best one hides what was lost.
      if (text.empty() || values.back() <= *std::min_element(values.begin(), values.end()))
        text = now;
    }
    if (values.empty()) return missing(why("serve", "request"));
    if (values.size() > 1) text += fmt::format(" (least of {})", values.size());
    return {*std::min_element(values.begin(), values.end()), text, ""};
  }

  std::optional<LogExcerpt> excerpt() const {
    return broke() ? log_excerpt(*telling_, fault_) : std::nullopt;
  }
  bool declares(const std::string& phase) const {
    const auto& declared = telling_ ? telling_->trace.declared_phases : std::vector<std::string>{};
    return std::find(declared.begin(), declared.end(), phase) != declared.end();
  }

 private:
  static EvidenceCell missing(std::string why) { return {{}, "", std::move(why)}; }
  EvidenceCell nothing_failed() const {
    return telling_ ? EvidenceCell{{}, "–", ""} : missing("it was not run");
  }

  template <typename Text>
  static EvidenceCell number(std::vector<double> values, const Text& text) {
    std::sort(values.begin(), values.end());
    const double median = values[values.size() / 2];
    EvidenceCell out{median, text(median), ""};
    if (values.size() > 1) out.text += fmt::format(" (median of {})", values.size());
    return out;
  }

  // Nobody told, or it was not reached: never the same.
  std::string why(const std::string& since, const std::string& kind) const {
    if (!telling_) return "it was not run";
    if (broke() && !since.empty() && begun_.count(since) == 0)
      return telling_->phase.empty() ? "it ended before that" : "it ended in " + telling_->phase;
    if (kinds_.count(kind) == 0) return fmt::format("nothing that was watched tells ({})", kind);
    return "nobody said";
  }

  const VariantReport& variant_;
  const RunRecord* telling_;
  std::vector<RunEvidence> evidence_;
  const trace::Event* fault_ = nullptr;
  bool fault_is_mine_ = false;
  std::set<std::string> kinds_, begun_;
};

}  // namespace

bool EvidenceRow::observed() const {
  return std::any_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.observed(); });
}

EvidenceTable evidence_of(const ScenarioReport& scenario) {
  EvidenceTable out;
  std::vector<Side> sides;
  sides.reserve(scenario.variants.size());
  for (const VariantReport& variant : scenario.variants) {
    out.sides.push_back(variant.name);
    sides.emplace_back(variant);
  }
  const auto row = [&](const char* group, std::string name, std::string label, std::string unit,
                       const auto& cell) {
    EvidenceRow one{group, std::move(name), std::move(label), std::move(unit), {}};
    for (const Side& side : sides) one.cells.push_back(cell(side));
    out.rows.push_back(std::move(one));
  };
  row("outcome", "outcome", "outcome", "", [](const Side& s) { return s.outcome(); });
  if (std::any_of(sides.begin(), sides.end(), [](const Side& s) { return s.broke(); })) {
    row("outcome", "failing_phase", "failing phase", "", [](const Side& s) { return s.phase(); });
    row("outcome", "failing_frame", "failing frame", "", [](const Side& s) { return s.frame(); });
    row("outcome", "error", "error", "", [](const Side& s) { return s.error(); });
    row("outcome", "failing_worker", "failing worker", "",
        [](const Side& s) { return s.worker(); });
  }
  // In the order in which they strike, others after them.
  std::vector<std::string> clocks(std::begin(kClocks), std::end(kClocks));
  std::set<std::string> more;
  for (const Side& side : sides) {
    for (const RunEvidence& one : side.evidence()) {
      for (const auto& [clock, value] : one.clocks_s) more.insert(clock);
    }
  }
  // The figure that stands for the first of them.
  if (more.erase("ready") > 0) clocks.insert(clocks.begin(), "ready");
  for (const std::string& clock : clocks) more.erase(clock);
  clocks.insert(clocks.end(), more.begin(), more.end());
  for (const std::string& clock : clocks) {
    std::string words = clock;
    std::replace(words.begin(), words.end(), '_', ' ');
    row("clocks", "time_to_" + clock + "_s", "time to " + words, "s",
        [&](const Side& s) { return s.time(&RunEvidence::clocks_s, clock, "ready", "ready"); });
  }
  for (const std::string_view phase : trace::phases()) {
    const std::string name(phase);
    if (std::none_of(sides.begin(), sides.end(), [&](const Side& s) { return s.declares(name); }))
      continue;
    row("phases", name + "_s", "in " + name, "s",
        [&](const Side& s) { return s.time(&RunEvidence::phases_s, name, name, "phase_end"); });
  }
  row("requests", "requests_ok", "requests served", "requests",
      [](const Side& s) { return s.requests(); });
  for (const Wanted& wanted : kWanted) {
    const trace::FigureRule* rule = trace::find_figure(wanted.name);
    row(wanted.group, wanted.name, wanted.label, rule ? std::string(rule->unit) : "",
        [&](const Side& s) { return s.figure(wanted); });
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (std::optional<LogExcerpt> excerpt = sides[i].excerpt()) {
      excerpt->side = i;
      out.excerpts.push_back(std::move(*excerpt));
    }
  }
  return out;
}

std::vector<Unseen> unseen(const EvidenceTable& table) {
  std::vector<Unseen> out;
  for (const EvidenceRow& row : table.rows) {
    std::map<std::string, std::vector<std::size_t>> sides;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (!row.cells[i].observed()) sides[row.cells[i].why].push_back(i);
    }
    for (const auto& [why, which] : sides) {
      const auto known =
          std::find_if(out.begin(), out.end(), [&, &why = why, &which = which](const Unseen& u) {
            return u.why == why && u.sides == which;
          });
      if (known == out.end()) {
        out.push_back({{row.label}, which, why});
      } else {
        known->labels.push_back(row.label);
      }
    }
  }
  return out;
}

}  // namespace warmgate::reports
