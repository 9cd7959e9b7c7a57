// The decision tables. Each rule of how runs become verdicts has a line here.
#include "harness/verdict/expectation.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using scenario::Bound;
using scenario::Expectation;
using scenario::GateRule;
using enum Outcome;
using V = Verdict;

const std::vector<Outcome> kAll = {kPassed,     kFailed,  kCrashed, kHung,
                                   kIncomplete, kSkipped, kInfra};

Bound equal(double x) {
  Bound b;
  b.low = x;
  b.text = number_text(x);
  return b;
}

V without(Outcome outcome) { return judge_run(run(outcome), nullptr, {}).verdict; }

TEST(JudgeRun, WithoutExpect) {
  EXPECT_EQ(without(kPassed), V::kPass);
  EXPECT_EQ(without(kFailed), V::kFail);
  EXPECT_EQ(without(kCrashed), V::kFail);
  EXPECT_EQ(without(kHung), V::kFail);
  EXPECT_EQ(without(kIncomplete), V::kInconclusive);
  EXPECT_EQ(without(kSkipped), V::kSkip);
  EXPECT_EQ(without(kInfra), V::kInfra);
  // An empty expectation is none.
  const Expectation empty;
  for (Outcome o : kAll) EXPECT_EQ(judge_run(run(o), &empty, {}).verdict, without(o));
}

TEST(JudgeRun, EveryExpectedAgainstEveryOutcome) {
  for (Outcome wanted : {kPassed, kFailed, kCrashed, kHung, kIncomplete}) {
    Expectation expect;
    expect.outcome = std::string(to_string(wanted));
    for (Outcome got : kAll) {
      const V verdict = judge_run(run(got), &expect, {}).verdict;
      const V right = got == kSkipped      ? V::kSkip
                      : got == kInfra      ? V::kInfra
                      : got == wanted      ? V::kPass
                      : got == kIncomplete ? V::kInconclusive
                                           : V::kFail;
      EXPECT_EQ(verdict, right) << to_string(wanted) << " expected, " << to_string(got);
    }
  }
}

enum class Seen { kAsExpected, kOther, kUnseen };

// All combinations of outcome, phase, contract and figure being right, wrong or not observed.
TEST(JudgeRun, EveryCombination) {
  for (int outcome = 0; outcome < 2; ++outcome)
    for (int phase = 0; phase < 2; ++phase)
      for (Seen contract : {Seen::kAsExpected, Seen::kOther, Seen::kUnseen})
        for (Seen figure : {Seen::kAsExpected, Seen::kOther, Seen::kUnseen}) {
          Expectation expect;
          expect.outcome = "crashed";
          expect.phase = "profile";
          expect.contracts = {"owned-resources"};
          expect.figures["kv_tokens"] = equal(7);
          RunRecord r = run(outcome == 0 ? kCrashed : kHung);
          r.phase = phase == 0 ? "profile" : "load";
          r.contracts = {contract == Seen::kAsExpected ? broken("owned-resources", {"buffer"})
                         : contract == Seen::kOther    ? kept("owned-resources")
                                                       : unseen("owned-resources")};
          if (figure != Seen::kUnseen) r.figures["kv_tokens"] = figure == Seen::kAsExpected ? 7 : 8;
          const bool wrong =
              outcome == 1 || phase == 1 || contract == Seen::kOther || figure == Seen::kOther;
          const bool missing = contract == Seen::kUnseen || figure == Seen::kUnseen;
          const V right = wrong ? V::kFail : missing ? V::kInconclusive : V::kPass;
          const RunVerdict v = judge_run(r, &expect, {});
          EXPECT_EQ(v.verdict, right) << v.reason;
          EXPECT_EQ(v.checks.size(), 4u);
          EXPECT_FALSE(v.reason.empty());
        }
}

TEST(JudgeRun, OutcomeLeftOut) {
  Expectation figures;  // only figures: it must still pass
  figures.figures["kv_tokens"] = equal(7);
  RunRecord r = run(kCrashed);
  r.figures["kv_tokens"] = 7;
  EXPECT_EQ(judge_run(r, &figures, {}).verdict, V::kFail);
  Expectation contract;  // a broken contract implies that it did not pass
  contract.contracts = {"keys-valid"};
  r = run(kFailed);
  r.contracts = {broken("keys-valid", {"K"})};
  EXPECT_EQ(judge_run(r, &contract, {}).verdict, V::kPass);
}

TEST(JudgeRun, AContractNobodyJudgedIsInconclusive) {
  Expectation expect;
  expect.contracts = {"numerics"};
  EXPECT_EQ(judge_run(run(kFailed), &expect, {}).verdict, V::kInconclusive);
  // Not applicable is an answer: it cannot be broken.
  RunRecord r = run(kFailed);
  r.contracts = {kept("numerics")};
  r.contracts[0].state = contract::State::kNotApplicable;
  EXPECT_EQ(judge_run(r, &expect, {}).verdict, V::kFail);
}

TEST(JudgeRun, ACrashBeforeTheFigureFails) {
  // The fix is gone: B crashes in profile and never reaches its capacity. That is a FAIL.
  Expectation expect;
  expect.outcome = "passed";
  expect.figures["kv_tokens"] = equal(9222468);
  const RunVerdict v = judge_run(run(kCrashed), &expect, {});
  EXPECT_EQ(v.verdict, V::kFail);
  EXPECT_NE(v.reason.find("outcome"), std::string::npos);
}

struct GateCase {
  const char* name;
  GateRule rule;
  Outcome outcome;
  std::optional<double> value;
  V right;  // of the check; kSkip = not judged
};

GateRule rule(std::optional<double> max, std::optional<double> min = std::nullopt) {
  GateRule r;
  r.max = max;
  r.min = min;
  return r;
}

TEST(Gate, Bounds) {
  const std::vector<GateCase> cases = {
      {"at max", rule(10), kPassed, 10, V::kPass},
      {"above max", rule(10), kPassed, 10.0001, V::kFail},
      {"at min", rule({}, 10), kPassed, 10, V::kPass},
      {"below min", rule({}, 10), kPassed, 9.9, V::kFail},
      {"between", rule(10, 1), kPassed, 5, V::kPass},
      {"not a number", rule(10), kPassed, std::numeric_limits<double>::quiet_NaN(), V::kFail},
      {"not observed", rule(10), kPassed, {}, V::kInconclusive},
      {"not observed, failed", rule(10), kFailed, {}, V::kInconclusive},
      {"crashed before it", rule(10), kCrashed, {}, V::kSkip},
      {"hung before it", rule(10), kHung, {}, V::kSkip},
      {"crashed after it", rule(10), kCrashed, 11, V::kFail},
  };
  for (const GateCase& c : cases) {
    const std::map<std::string, GateRule> rules = {{"time_to_ready_s", c.rule}};
    GateContext gate;
    gate.rules = &rules;
    RunRecord r = run(c.outcome);
    if (c.value) r.figures["time_to_ready_s"] = *c.value;
    const auto checks = judge_gate(gate, r);
    ASSERT_EQ(checks.size(), 1u) << c.name;
    EXPECT_EQ(checks[0].verdict, c.right) << c.name;
  }
}

TEST(Gate, DecidesTheRunsVerdict) {
  const std::map<std::string, GateRule> rules = {{"kv_bytes", rule({}, 100)}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord r = run(kPassed);
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kInconclusive);
  r.figures["kv_bytes"] = 99;
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);
  r.figures["kv_bytes"] = 100;
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kPass);
  // An expected crash is not made inconclusive by a gate on what it never reached.
  Expectation expect;
  expect.outcome = "crashed";
  EXPECT_EQ(judge_run(run(kCrashed), &expect, gate).verdict, V::kPass);
}

TEST(Gate, DisturbedTimesAreShownNotJudged) {
  const std::map<std::string, GateRule> rules = {{"time_to_ready_s", rule(1)},
                                                 {"kv_bytes", rule(1)}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord r = run(kPassed);
  r.time_disturbed = true;
  r.figures = {{"time_to_ready_s", 100}, {"kv_bytes", 100}};
  const auto checks = judge_gate(gate, r);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].verdict, V::kFail);  // kv_bytes is no time
  EXPECT_EQ(checks[1].verdict, V::kSkip);
}

TEST(Gate, RegressOfALoneRunIsNotJudgedAndNotInconclusive) {
  GateRule both = rule(600);
  both.regress = scenario::Regress{10, 5};
  const std::map<std::string, GateRule> rules = {{"time_to_ready_s", both}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord r = run(kPassed);
  r.figures["time_to_ready_s"] = 1;
  const RunVerdict v = judge_run(r, nullptr, gate);
  EXPECT_EQ(v.verdict, V::kPass);
  EXPECT_EQ(v.checks.back().verdict, V::kSkip);
  EXPECT_NE(v.checks.back().note.find("not judged"), std::string::npos);
}

TEST(Gate, NamesAContract) {
  const std::map<std::string, GateRule> rules = {{"keys-reachable", GateRule{}}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord r = run(kPassed);
  r.contracts = {kept("keys-reachable")};
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kPass);
  r.contracts[0].notes.push_back(finding("keys-reachable", "K{A=9}"));  // a note counts here
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);
  r.contracts = {unseen("keys-reachable")};
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kInconclusive);
  r.contracts.clear();
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kInconclusive);
  r.contracts = {kept("keys-reachable")};
  r.contracts[0].state = contract::State::kNotApplicable;
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kPass);
  // What expect wants broken, the gate does not hold against the run.
  Expectation expect;
  expect.outcome = "failed";
  expect.contracts = {"keys-reachable"};
  r = run(kFailed);
  r.contracts = {broken("keys-reachable", {"K"})};
  EXPECT_EQ(judge_run(r, &expect, gate).verdict, V::kPass);
}

TEST(Gate, ComparisonsAreJudgedElsewhere) {
  const std::map<std::string, GateRule> rules = {{"capacity-equal", rule(0)}};
  GateContext gate;
  gate.rules = &rules;
  EXPECT_TRUE(judge_gate(gate, run(kPassed)).empty());
}

TEST(Gate, NewAgainstAcceptedAndAllow) {
  GateRule none;
  none.new_count = 0;
  const std::map<std::string, GateRule> rules = {{"compiles_after_ready", none}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord r = run(kPassed);
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kInconclusive);  // not observed
  EXPECT_EQ(judge_run(run(kFailed), nullptr, gate).verdict, V::kFail);
  r.sets["compiles_after_ready"] = {};
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kPass);
  r.sets["compiles_after_ready"] = {"K{A=1}", "K{A=2}"};
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);
  AcceptedVariant accepted;
  accepted.sets["compiles_after_ready"] = {"K{A=1}"};
  gate.accepted = &accepted;
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);
  EXPECT_EQ(new_members(gate, r, "compiles_after_ready")->size(), 1u);
  std::vector<scenario::Allow> allow(1);
  allow[0].contract = "keys-covered";
  allow[0].match = "K{A=2*";
  gate.allow = &allow;
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kPass);
  allow[0].until = "2026-01-01";
  gate.today = "2026-01-02";
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);  // expired
  allow[0].until = "";
  allow[0].variants = {"C"};
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);  // another variant's
  allow[0].variants = {};
  allow[0].contract = "keys-valid";
  EXPECT_EQ(judge_run(r, nullptr, gate).verdict, V::kFail);  // another contract's
}

RunVerdict verdict(V v, const std::string& reason = "r") {
  RunVerdict out;
  out.verdict = v;
  out.reason = reason;
  return out;
}

struct Repeats {
  std::vector<Outcome> outcomes;
  std::vector<V> verdicts;
  V right;
  const char* says;
};

TEST(OverRepeats, AllMustAgree) {
  const std::vector<Repeats> table = {
      {{}, {}, V::kSkip, "nothing ran"},
      {{kPassed}, {V::kPass}, V::kPass, ""},
      {{kPassed, kPassed}, {V::kPass, V::kPass}, V::kPass, "all 2 repeats"},
      {{kPassed, kCrashed, kPassed},
       {V::kPass, V::kFail, V::kPass},
       V::kFail,
       "1 crashed, 2 passed"},
      {{kCrashed, kHung}, {V::kFail, V::kFail}, V::kFail, "1 crashed, 1 hung"},
      // Both as expected (expect names only a contract), yet not the same thing twice.
      {{kCrashed, kFailed}, {V::kPass, V::kPass}, V::kFail, "1 crashed, 1 failed"},
      {{kPassed, kInfra}, {V::kPass, V::kInfra}, V::kInfra, "1 INFRA, 1 PASS"},
      {{kCrashed, kInfra}, {V::kFail, V::kInfra}, V::kFail, "1 FAIL, 1 INFRA"},
      {{kPassed, kPassed}, {V::kPass, V::kInconclusive}, V::kInconclusive, "do not agree"},
      {{kPassed, kPassed}, {V::kPass, V::kFail}, V::kFail, "1 FAIL, 1 PASS"},
      {{kInfra, kInfra}, {V::kInfra, V::kInfra}, V::kInfra, ""},
      {{kSkipped, kSkipped}, {V::kSkip, V::kSkip}, V::kSkip, ""},
  };
  for (const Repeats& row : table) {
    std::vector<RunRecord> runs;
    for (Outcome o : row.outcomes) runs.push_back(run(o));
    std::vector<const RunRecord*> pointers;
    for (const RunRecord& r : runs) pointers.push_back(&r);
    std::vector<RunVerdict> verdicts;
    for (V v : row.verdicts) verdicts.push_back(verdict(v));
    const RunVerdict v = over_repeats(pointers, verdicts);
    EXPECT_EQ(to_string(v.verdict), to_string(row.right)) << row.says << " / " << v.reason;
    EXPECT_NE(v.reason.find(row.says), std::string::npos) << v.reason;
  }
}

}  // namespace
}  // namespace warmgate::verdict
