#include "harness/verdict/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/trace/quantity.h"

namespace warmgate::verdict {
namespace {

using scenario::Expectation;

std::string check_text(const Check& check) {
  std::string out = check.what + ":";
  if (!check.expected.empty()) out += fmt::format(" expected {},", check.expected);
  return out + (check.seen.empty() ? " " + check.note : " saw " + check.seen);
}

// FAIL, then INCONCLUSIVE, else PASS; the first check that decided is the reason.
void decide(RunVerdict& verdict, const std::string& otherwise) {
  for (Verdict worst : {Verdict::kFail, Verdict::kInconclusive}) {
    const auto it = std::find_if(verdict.checks.begin(), verdict.checks.end(),
                                 [&](const Check& c) { return c.verdict == worst; });
    if (it == verdict.checks.end()) continue;
    verdict.verdict = worst;
    verdict.reason = check_text(*it);
    return;
  }
  verdict.verdict = Verdict::kPass;
  verdict.reason = otherwise;
}

Verdict of_outcome(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return Verdict::kPass;
    case Outcome::kFailed:
    case Outcome::kCrashed:
    case Outcome::kHung:
      return Verdict::kFail;
    case Outcome::kIncomplete:
      return Verdict::kInconclusive;
    case Outcome::kSkipped:
      return Verdict::kSkip;
    case Outcome::kInfra:
      return Verdict::kInfra;
  }
  return Verdict::kInfra;
}

Check outcome_check(const RunRecord& run, const std::string& wanted) {
  Check check{"outcome", wanted, std::string(to_string(run.outcome)), Verdict::kPass, ""};
  if (wanted != to_string(run.outcome)) {
    check.verdict = run.outcome == Outcome::kIncomplete ? Verdict::kInconclusive : Verdict::kFail;
    check.note = run.reason;
  }
  return check;
}

Check contract_check(const RunRecord& run, const std::string& name) {
  Check check{"contract " + name, "broken", "not judged", Verdict::kInconclusive, ""};
  const contract::Result* result = find_result(run, name);
  if (!result) return check;
  check.seen = std::string(contract::to_string(result->state));
  check.note = result->why;
  switch (result->state) {
    case contract::State::kBroken:
      check.verdict = Verdict::kPass;
      if (!result->findings.empty()) check.note = result->findings.front().message;
      break;
    case contract::State::kNotObserved:
      check.verdict = Verdict::kInconclusive;
      check.note = contract::why_not_observed(*result);
      break;
    case contract::State::kKept:
    case contract::State::kNotApplicable:
      check.verdict = Verdict::kFail;
      break;
  }
  return check;
}

Check figure_check(const RunRecord& run, const std::string& name, const scenario::Bound& bound) {
  Check check{"figure " + name, bound.text, "not observed", Verdict::kInconclusive, ""};
  const auto it = run.figures.find(name);
  if (it == run.figures.end()) return check;
  const auto info = run.figure_info.find(name);
  check.seen = trace::quantity_text(name, it->second,
                                    info == run.figure_info.end() ? "" : info->second.unit);
  check.verdict = bound.holds(it->second) ? Verdict::kPass : Verdict::kFail;
  return check;
}

void expectations(const RunRecord& run, const Expectation& expect, RunVerdict& out) {
  const bool must_break = expect.phase.has_value() || !expect.contracts.empty();
  if (expect.outcome)
    out.checks.push_back(outcome_check(run, *expect.outcome));
  else if (!must_break)
    out.checks.push_back(outcome_check(run, "passed"));
  if (expect.phase) {
    Check check{"phase", *expect.phase, run.phase.empty() ? "none" : run.phase, Verdict::kPass, ""};
    if (*expect.phase != run.phase) check.verdict = Verdict::kFail;
    out.checks.push_back(std::move(check));
  }
  for (const std::string& name : expect.contracts) out.checks.push_back(contract_check(run, name));
  for (const auto& [name, bound] : expect.figures)
    out.checks.push_back(figure_check(run, name, bound));
}

std::string counts_text(const std::map<std::string, int>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, n] : counts) parts.push_back(fmt::format("{} {}", n, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

bool is_sample(const RunRecord& run) {
  return run.outcome == Outcome::kPassed || run.outcome == Outcome::kFailed ||
         run.outcome == Outcome::kCrashed || run.outcome == Outcome::kHung;
}

RunVerdict judge_run(const RunRecord& run, const Expectation* expect, const GateContext& gate) {
  RunVerdict out;
  if (run.outcome == Outcome::kInfra || run.outcome == Outcome::kSkipped) {
    out.verdict = of_outcome(run.outcome);
    out.reason = run.reason;
    return out;
  }
  std::string otherwise;
  GateContext with = gate;
  if (expect && !expect->empty()) {
    expectations(run, *expect, out);
    with.expected_broken.insert(with.expected_broken.end(), expect->contracts.begin(),
                                expect->contracts.end());
    otherwise = fmt::format("{}, as expected", to_string(run.outcome));
    if (run.outcome != Outcome::kPassed && !run.phase.empty())
      otherwise = fmt::format("{} in {}, as expected", to_string(run.outcome), run.phase);
  } else {
    Check check{"outcome", "passed", std::string(to_string(run.outcome)), of_outcome(run.outcome),
                run.outcome == Outcome::kPassed ? "" : run.reason};
    out.checks.push_back(std::move(check));
    otherwise = run.reason;
  }
  for (Check& check : judge_gate(with, run)) out.checks.push_back(std::move(check));
  decide(out, otherwise);
  return out;
}

RunVerdict over_repeats(const std::vector<const RunRecord*>& runs,
                        const std::vector<RunVerdict>& verdicts) {
  RunVerdict out;
  if (verdicts.empty()) {
    out.verdict = Verdict::kSkip;
    out.reason = "nothing ran";
    return out;
  }
  if (verdicts.size() == 1) return verdicts.front();
  std::vector<Verdict> all;
  std::map<std::string, int> by_verdict, by_outcome;
  for (const RunVerdict& v : verdicts) {
    all.push_back(v.verdict);
    ++by_verdict[std::string(to_string(v.verdict))];
  }
  for (const RunRecord* run : runs)
    if (is_sample(*run)) ++by_outcome[std::string(to_string(run->outcome))];
  out.verdict = worst(all);
  // The worst repeat's checks are the ones to look at.
  for (const RunVerdict& v : verdicts) {
    if (v.verdict != out.verdict) continue;
    out.checks = v.checks;
    out.reason = v.reason;
    break;
  }
  const std::string n = fmt::format("{} repeats", verdicts.size());
  const bool failing = by_verdict.count("FAIL") != 0;
  if (by_outcome.size() > 1 && (failing || out.verdict == Verdict::kPass)) {
    out.verdict = Verdict::kFail;
    out.reason = fmt::format("{} do not agree: {}", n, counts_text(by_outcome));
    out.checks.insert(out.checks.begin(),
                      Check{"repeats", "all agree", counts_text(by_outcome), Verdict::kFail, ""});
  } else if (by_verdict.size() > 1) {
    out.reason = fmt::format("{} do not agree: {} ({})", n, counts_text(by_verdict), out.reason);
    out.checks.insert(out.checks.begin(),
                      Check{"repeats", "all agree", counts_text(by_verdict), out.verdict, ""});
  } else {
    out.reason = fmt::format("{} (all {})", out.reason, n);
  }
  return out;
}

RunVerdict judge_ab(const std::vector<const RunRecord*>& a, const std::vector<const RunRecord*>& b,
                    const GateContext& gate, const AbNames& names) {
  RunVerdict out;
  std::vector<const RunRecord*> samples_a, samples_b;
  std::copy_if(a.begin(), a.end(), std::back_inserter(samples_a),
               [](const RunRecord* run) { return is_sample(*run); });
  std::copy_if(b.begin(), b.end(), std::back_inserter(samples_b),
               [](const RunRecord* run) { return is_sample(*run); });
  if (samples_a.empty() || samples_b.empty()) {
    out.verdict = Verdict::kInconclusive;
    const auto& side = samples_a.empty() ? a : b;
    out.reason = fmt::format("side {} has no valid sample{}", samples_a.empty() ? names.a : names.b,
                             side.empty() ? "" : ": " + side.front()->reason);
    return out;
  }
  const auto text = [](const std::vector<const RunRecord*>& runs) {
    std::map<std::string, int> counts;
    for (const RunRecord* run : runs) ++counts[std::string(to_string(run->outcome))];
    return counts_text(counts);
  };
  const auto bad = std::find_if(samples_b.begin(), samples_b.end(), [](const RunRecord* run) {
    return run->outcome != Outcome::kPassed;
  });
  out.checks.push_back({"outcome of " + names.b, "passed", text(samples_b),
                        bad == samples_b.end() ? Verdict::kPass : Verdict::kFail,
                        bad == samples_b.end() ? "" : (*bad)->reason});
  out.checks.push_back(
      {"outcome of " + names.a, "", text(samples_a), Verdict::kSkip, "shown, not judged"});

  AcceptedVariant known = gate.accepted ? *gate.accepted : AcceptedVariant();
  for (const RunRecord* run : samples_a)
    for (const auto& [name, members] : run->sets)
      known.sets[name].insert(members.begin(), members.end());
  GateContext with = gate;
  with.accepted = &known;
  for (const RunRecord* run : samples_b)
    for (Check& check : judge_gate(with, *run)) {
      // The lone run's "regress not judged" is judged below, with two sides.
      if (check.what.ends_with(" regress")) continue;
      out.checks.push_back(std::move(check));
    }
  for (Check& check : judge_regress(gate, samples_a, samples_b, names))
    out.checks.push_back(std::move(check));
  decide(out, fmt::format("{} passed ({}) and is not worse than {} ({})", names.b, text(samples_b),
                          names.a, text(samples_a)));
  return out;
}

}  // namespace warmgate::verdict
