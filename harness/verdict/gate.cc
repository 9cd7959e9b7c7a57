#include "harness/verdict/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/scenario/contract_names.h"
#include "harness/trace/quantity.h"
#include "harness/trace/vocabulary.h"
#include "harness/verdict/allow.h"

namespace warmgate::verdict {
namespace {

using scenario::GateRule;

// Whose `allow` entries speak of the members of a set.
std::string contract_of(const std::string& set) {
  if (set == "compiles_after_ready" || set == "keys_launched") return "keys-covered";
  if (set == "keys_invalid") return "keys-valid";
  if (set == "skips") return "warmup-complete";
  return set;
}

bool is_time(const RunRecord& run, const std::string& figure) {
  if (const trace::FigureRule* rule = trace::find_figure(figure)) return rule->unit == kTimeUnit;
  const auto it = run.figure_info.find(figure);
  return it != run.figure_info.end() &&
         (it->second.unit == "s" || it->second.unit == "ms" || it->second.unit == "us");
}

// A value of a figure or a count of findings with its unit, as the other reports print it.
std::string told(const RunRecord& run, const std::string& name, double value) {
  const auto it = run.figure_info.find(name);
  return trace::quantity_text(name, value, it == run.figure_info.end() ? "" : it->second.unit);
}

// `value` beside a limit or another value: what is not equal must not look equal.
std::string told_beside(const RunRecord& run, const std::string& name, double value, double other) {
  std::string text = told(run, name, value);
  if (value != other && text == told(run, name, other))
    text += fmt::format(" ({} beside {})", number_text(value), number_text(other));
  return text;
}

bool ended_early(const RunRecord& run) {
  return run.outcome == Outcome::kCrashed || run.outcome == Outcome::kHung;
}

Check make(std::string what, std::string expected, std::string seen, Verdict verdict,
           std::string note = "") {
  return {std::move(what), std::move(expected), std::move(seen), verdict, std::move(note)};
}

// What to say of something that a rule names and nobody saw.
Check unseen(const RunRecord& run, std::string what, std::string expected, std::string seen) {
  if (ended_early(run))
    return make(std::move(what), std::move(expected), std::move(seen), Verdict::kSkip,
                fmt::format("not judged: the run {} before it", to_string(run.outcome)));
  return make(std::move(what), std::move(expected), std::move(seen), Verdict::kInconclusive);
}

class Judge {
 public:
  Judge(const GateContext& gate, const RunRecord& run) : gate_(gate), run_(run) {}

  std::vector<Check> run() {
    for (const auto& [name, rule] : *gate_.rules) {
      const contract::Result* result = find_result(run_, name);
      const scenario::ContractName* known = scenario::find_contract_name(name);
      // Over two traces: whoever has both judges it.
      if (known && known->comparison) continue;
      if (result || known)
        judge_contract(name, rule, result);
      else
        judge_figure(name, rule);
    }
    return std::move(checks_);
  }

 private:
  void judge_contract(const std::string& name, const GateRule& rule,
                      const contract::Result* result) {
    const std::string what = "gate " + name;
    const auto& wanted = gate_.expected_broken;
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) {
      checks_.push_back(make(what, "", "", Verdict::kSkip, "not judged: expect wants it broken"));
      return;
    }
    if (!result || result->state == contract::State::kNotObserved) {
      checks_.push_back(unseen(run_, what, "observed",
                               result && !result->why.empty()
                                   ? "not observed: " + contract::why_not_observed(*result)
                                   : std::string("not observed")));
      return;
    }
    if (result->state == contract::State::kNotApplicable) {
      checks_.push_back(make(what, "", "not applicable: " + result->why, Verdict::kSkip));
      return;
    }
    const double count = static_cast<double>(result->findings.size() + result->notes.size());
    const bool bare = !rule.max && !rule.min && !rule.new_count;
    bounds(what, name, count, bare ? std::optional<double>(0) : rule.max, rule.min, false);
    if (rule.new_count) judge_new(what, name, *rule.new_count);
  }

  void judge_figure(const std::string& name, const GateRule& rule) {
    const std::string what = "gate " + name;
    const auto it = run_.figures.find(name);
    if (rule.max || rule.min) {
      if (it == run_.figures.end()) {
        checks_.push_back(unseen(run_, what, limits(name, rule.max, rule.min), "not observed"));
      } else {
        bounds(what, name, it->second, rule.max, rule.min, is_time(run_, name));
      }
    }
    if (rule.new_count) judge_new(what, name, *rule.new_count);
    if (rule.regress)
      checks_.push_back(
          make(what + " regress", "",
               it == run_.figures.end() ? "not observed" : told(run_, name, it->second),
               Verdict::kSkip, "not judged: a lone run has nothing to compare with"));
  }

  std::string limits(const std::string& name, const std::optional<double>& max,
                     const std::optional<double>& min) const {
    std::string out;
    if (max) out = "<= " + told(run_, name, *max);
    if (min) out += (out.empty() ? ">= " : ", >= ") + told(run_, name, *min);
    return out;
  }

  void bounds(const std::string& what, const std::string& name, double value,
              const std::optional<double>& max, const std::optional<double>& min, bool time) {
    if (!max && !min) return;
    const bool holds = !(max && !(value <= *max)) && !(min && !(value >= *min));
    const double limit = max && !(value <= *max) ? *max : min ? *min : *max;
    Check check = make(what, limits(name, max, min), told_beside(run_, name, value, limit),
                       holds ? Verdict::kPass : Verdict::kFail);
    if (time && run_.time_disturbed) {
      check.verdict = Verdict::kSkip;
      check.note = "not judged: other work ran beside it";
    }
    checks_.push_back(std::move(check));
  }

  void judge_new(const std::string& what, const std::string& name, std::int64_t allowed) {
    const std::string expected = fmt::format("at most {} new", allowed);
    const auto members = new_members(gate_, run_, name);
    if (!members) {
      checks_.push_back(unseen(run_, what + " new", expected, "not observed"));
      return;
    }
    Check check =
        make(what + " new", expected, fmt::format("{} new", members->size()),
             std::cmp_less_equal(members->size(), allowed) ? Verdict::kPass : Verdict::kFail);
    if (!members->empty()) {
      const std::size_t shown = std::min<std::size_t>(3, members->size());
      check.note = fmt::format(
          "{}{}",
          fmt::join(members->begin(), members->begin() + static_cast<std::ptrdiff_t>(shown), ", "),
          members->size() > shown ? ", ..." : "");
    }
    checks_.push_back(std::move(check));
  }

  const GateContext& gate_;
  const RunRecord& run_;
  std::vector<Check> checks_;
};

std::optional<double> median(const std::vector<const RunRecord*>& runs, const std::string& name) {
  std::vector<double> values;
  for (const RunRecord* run : runs) {
    const auto it = run->figures.find(name);
    if (it != run->figures.end()) values.push_back(it->second);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Which way is better: the rule's word, the metric's, the vocabulary's; "" if nobody says.
std::string direction(const GateRule& rule, const std::vector<const RunRecord*>& runs,
                      const std::string& name) {
  if (rule.direction) return *rule.direction;
  for (const RunRecord* run : runs) {
    const auto it = run->figure_info.find(name);
    if (it != run->figure_info.end() && !it->second.direction.empty()) return it->second.direction;
  }
  const trace::FigureRule* known = trace::find_figure(name);
  if (!known || known->better == trace::Direction::kNone) return "";
  return known->better == trace::Direction::kHigher ? "higher" : "lower";
}

Check regress(const std::string& name, const GateRule& rule, const std::vector<const RunRecord*>& a,
              const std::vector<const RunRecord*>& b, const AbNames& sides) {
  Check check;
  check.what = "gate " + name + " regress";
  check.verdict = Verdict::kSkip;
  const auto x = median(a, name), y = median(b, name);
  if (!x || !y) {
    const auto reached = [&](const auto& runs, const std::optional<double>& value) {
      return value && !runs.empty() ? told(*runs.front(), name, *value) : "not reached";
    };
    check.seen = fmt::format("{} {}, {} {}", sides.a, reached(a, x), sides.b, reached(b, y));
    check.note = "not judged: a side did not reach it";
    return check;
  }
  const std::string better = direction(rule, b, name);
  const double worse = better == "higher" ? *x - *y : *y - *x;
  // Where nobody says which way is better, any change counts.
  const double excess = better.empty() ? std::abs(*y - *x) : worse;
  std::vector<std::string> limit;
  bool beyond = excess > 0;
  if (rule.regress->by_percent) {
    limit.push_back(fmt::format("{} %", number_text(*rule.regress->by_percent)));
    // Of nothing, everything is infinitely many per cent.
    beyond = beyond && excess * 100 > *rule.regress->by_percent * std::abs(*x);
  }
  if (rule.regress->and_absolute) {
    limit.push_back(told(*b.front(), name, *rule.regress->and_absolute));
    beyond = beyond && excess > *rule.regress->and_absolute;
  }
  check.expected =
      fmt::format("worse than {} of {} by at most {}", told(*a.front(), name, *x), sides.a,
                  limit.empty() ? "nothing" : fmt::format("{}", fmt::join(limit, " and ")));
  check.seen = fmt::format("{} of {}", told_beside(*b.front(), name, *y, *x), sides.b);
  if (*x != 0) check.seen += fmt::format(" ({:+.1f} %)", (*y - *x) * 100 / std::abs(*x));
  check.verdict = beyond ? Verdict::kFail : Verdict::kPass;
  const RunRecord* sample = b.empty() ? nullptr : b.front();
  if (sample && is_time(*sample, name)) {
    check.note = fmt::format("shown, not gated: times need more than a median{}",
                             beyond ? "; beyond the limit" : "");
    check.verdict = Verdict::kSkip;
  }
  return check;
}

}  // namespace

std::optional<std::vector<std::string>> new_members(const GateContext& gate, const RunRecord& run,
                                                    const std::string& name) {
  auto it = run.sets.find(name);
  const std::string set = it == run.sets.end() ? "contract:" + name : name;
  it = run.sets.find(set);
  if (it == run.sets.end()) return std::nullopt;
  const std::set<std::string>* accepted = nullptr;
  if (gate.accepted) {
    const auto found = gate.accepted->sets.find(set);
    if (found != gate.accepted->sets.end()) accepted = &found->second;
  }
  std::vector<std::string> out;
  for (const std::string& member : it->second) {
    if (accepted && accepted->count(member) != 0) continue;
    const bool allowed =
        gate.allow && std::any_of(gate.allow->begin(), gate.allow->end(), [&](const auto& entry) {
          return applies(entry, run.variant, gate.today) &&
                 matches(entry, contract_of(name), member);
        });
    if (!allowed) out.push_back(member);
  }
  return out;
}

std::vector<Check> judge_gate(const GateContext& gate, const RunRecord& run) {
  if (!gate.rules) return {};
  return Judge(gate, run).run();
}

std::vector<Check> judge_regress(const GateContext& gate, const std::vector<const RunRecord*>& a,
                                 const std::vector<const RunRecord*>& b, const AbNames& names) {
  std::vector<Check> checks;
  if (!gate.rules) return checks;
  for (const auto& [name, rule] : *gate.rules)
    if (rule.regress) checks.push_back(regress(name, rule, a, b, names));
  return checks;
}

}  // namespace warmgate::verdict
