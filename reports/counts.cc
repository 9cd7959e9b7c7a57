// Counts in words: what a run kept, what a whole report came to.
#include <fmt/format.h>

#include <map>

#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {

using verdict::Verdict;

bool is_good(Verdict verdict) { return verdict == Verdict::kPass || verdict == Verdict::kSkip; }

std::string contracts_text(const verdict::RunRecord& run) {
  std::map<contract::State, int> count;
  for (const contract::Result& result : run.contracts) ++count[result.state];
  const int kept = count[contract::State::kKept];
  std::string out = fmt::format("{} contract{} kept", kept, kept == 1 ? "" : "s");
  const auto add = [&](contract::State state, const char* word) {
    if (count[state] > 0) out += fmt::format(", {} {}", count[state], word);
  };
  add(contract::State::kBroken, "broken");
  add(contract::State::kNotObserved, "not observed");
  return out;
}

std::string counts_text(const Report& report) {
  std::map<Verdict, int> count;
  std::size_t variants = 0, runs = 0, skipped = 0;
  for (const ScenarioReport& s : report.scenarios) {
    skipped += s.variants.empty() && s.verdict == Verdict::kSkip ? 1 : 0;
    for (const VariantReport& v : s.variants) {
      ++variants;
      runs += v.runs.size();
      ++count[v.verdict.verdict];
    }
  }
  std::string counts;
  for (const Verdict v :
       {Verdict::kFail, Verdict::kInfra, Verdict::kInconclusive, Verdict::kSkip, Verdict::kPass}) {
    if (count[v] == 0) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count[v], verdict::to_string(v));
  }
  const auto plural = [](std::size_t n, const char* word) {
    return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
  };
  std::string what =
      fmt::format("{}: {}, {}, {} in {}", report.verb, plural(report.scenarios.size(), "scenario"),
                  plural(variants, "variant"), plural(runs, "run"), duration_text(report.wall_s));
  if (!counts.empty()) what += " (" + counts + ")";
  if (skipped > 0) what += fmt::format("; {} skipped", plural(skipped, "scenario"));
  if (report.interrupted) what += "; interrupted: this is what was seen so far";
  if (report.exit_code == 0 && !is_good(report.verdict)) what += "; soft, so the exit code is 0";
  return what;
}

}  // namespace warmgate::reports
