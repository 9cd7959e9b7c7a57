// B against A: each rule of the comparison has a line here.
#include <gtest/gtest.h>

#include "harness/verdict/expectation.h"
#include "harness/verdict/figures.h"
#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using scenario::GateRule;
using enum Outcome;
using V = Verdict;

const std::vector<Outcome> kAll = {kPassed,     kFailed,  kCrashed, kHung,
                                   kIncomplete, kSkipped, kInfra};

GateRule rule(std::optional<double> max) {
  GateRule r;
  r.max = max;
  return r;
}

V ab(const RunRecord& a, const RunRecord& b, const GateContext& gate = {}) {
  return judge_ab({&a}, {&b}, gate).verdict;
}

TEST(Ab, OutcomesDecide) {
  for (Outcome a : kAll)
    for (Outcome b : kAll) {
      const bool valid_a = a != kInfra && a != kSkipped && a != kIncomplete;
      const bool valid_b = b != kInfra && b != kSkipped && b != kIncomplete;
      const V right = !valid_a || !valid_b ? V::kInconclusive : b == kPassed ? V::kPass : V::kFail;
      EXPECT_EQ(ab(run(a), run(b)), right) << to_string(a) << " " << to_string(b);
    }
  const RunRecord b = run(kPassed);
  EXPECT_EQ(judge_ab({}, {&b}, {}).verdict, V::kInconclusive);
}

struct RegressCase {
  const char* figure;
  scenario::Regress limit;
  std::optional<double> a, b;
  std::optional<std::string> direction;
  V right;
};

TEST(Ab, Regress) {
  const std::optional<std::string> none;
  const std::vector<RegressCase> table = {
      {"kv_bytes", {1, {}}, 100, 99, none, V::kPass},        // exactly 1 % worse is not beyond it
      {"kv_bytes", {1, {}}, 100, 98.9, none, V::kFail},      // higher is better, by the vocabulary
      {"kv_bytes", {1, {}}, 100, 300, none, V::kPass},       // better
      {"weights_bytes", {1, {}}, 100, 102, none, V::kFail},  // lower is better
      {"weights_bytes", {1, {}}, 100, 50, none, V::kPass},
      {"weights_bytes", {1, {}}, 100, 50, "higher", V::kFail},  // the rule's word counts
      {"weights_bytes", {10, 5}, 100, 112, none, V::kFail},     // both exceeded
      {"weights_bytes", {10, 50}, 100, 112, none, V::kPass},    // by, but not and
      {"weights_bytes", {50, 5}, 100, 112, none, V::kPass},     // and, but not by
      {"weights_bytes", {{}, 5}, 100, 105.5, none, V::kFail},
      {"weights_bytes", {10, {}}, 0, 1, none, V::kFail},  // from nothing to something
      {"weights_bytes", {10, {}}, 0, 0, none, V::kPass},
      {"keys_warmed", {10, {}}, 100, 80, none, V::kFail},   // nobody says which way is better
      {"time_to_ready_s", {10, {}}, 1, 9, none, V::kPass},  // times are shown, not gated
      {"kv_bytes", {1, {}}, {}, 50, none, V::kPass},        // A did not reach it: not judged
      {"kv_bytes", {1, {}}, 100, {}, none, V::kPass},
  };
  for (const RegressCase& c : table) {
    GateRule r;
    r.regress = c.limit;
    r.direction = c.direction;
    const std::map<std::string, GateRule> rules = {{c.figure, r}};
    GateContext gate;
    gate.rules = &rules;
    RunRecord a = run(kCrashed, "A"), b = run(kPassed);
    if (c.a) a.figures[c.figure] = *c.a;
    if (c.b) b.figures[c.figure] = *c.b;
    const RunVerdict v = judge_ab({&a}, {&b}, gate);
    EXPECT_EQ(v.verdict, c.right) << c.figure << " " << v.reason;
    if (!c.a || !c.b) {
      EXPECT_NE(v.checks.back().note.find("not judged"), std::string::npos);
    }
  }
}

// By their names, with units, and never two values that look alike and are not.
TEST(Ab, TextsNameTheSidesAndTheUnits) {
  GateRule bytes, tokens, ms;
  bytes.regress = scenario::Regress{1, 1048576};
  tokens.max = 5;
  ms.min = 600;
  const std::map<std::string, GateRule> rules = {
      {"kv_bytes", bytes}, {"kv_tokens", tokens}, {"ttft_first_ms", ms}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord a = run(kPassed, "old"), b = run(kPassed, "new");
  a.figures["kv_bytes"] = 95007340800;
  b.figures["kv_bytes"] = 47503670400;
  b.figures["kv_tokens"] = 9222468;
  b.figures["ttft_first_ms"] = 1712;
  const RunVerdict v = judge_ab({&a}, {&b}, gate, {"old", "new"});
  std::string all;
  for (const Check& c : v.checks)
    all += c.what + "|" + c.expected + "|" + c.seen + "|" + c.note + "\n";
  EXPECT_EQ(all,
            "outcome of new|passed|1 passed|\n"
            "outcome of old||1 passed|shown, not judged\n"
            "gate kv_tokens|<= 5 tokens|9,222,468 tokens|\n"
            "gate ttft_first_ms|>= 600 ms|1,712 ms|\n"
            "gate kv_bytes regress|worse than 95,007,340,800 (88.48 GiB) of old by at most 1 % and "
            "1,048,576 (1.00 MiB)|47,503,670,400 (44.24 GiB) of new (-50.0 %)|\n");
  EXPECT_EQ(judge_ab({&a}, {}, gate, {"old", "new"}).reason, "side new has no valid sample");
  a.figures.clear();
  EXPECT_EQ(judge_ab({&a}, {&b}, gate, {"old", "new"}).checks.back().seen,
            "old not reached, new 47,503,670,400 (44.24 GiB)");
  EXPECT_EQ(judge_ab({&a}, {&b}, {}, {"old", "new"}).reason,
            "new passed (1 passed) and is not worse than old (1 passed)");
}

TEST(Ab, WhatIsNotEqualDoesNotLookEqual) {
  const std::map<std::string, GateRule> rules = {{"time_to_ready_s", rule(5)}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord late = run(kPassed);
  late.figures["time_to_ready_s"] = 5.0001;
  EXPECT_EQ(judge_gate(gate, late).at(0).seen, "5.00 s (5.0001 beside 5)");
}

TEST(Ab, MaxOfTimesCounts) {
  const std::map<std::string, GateRule> rules = {{"time_to_ready_s", rule(5)}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord a = run(kPassed, "A"), b = run(kPassed);
  a.figures["time_to_ready_s"] = b.figures["time_to_ready_s"] = 6;
  EXPECT_EQ(ab(a, b, gate), V::kFail);
}

TEST(Ab, MediansOfRepeats) {
  GateRule r;
  r.regress = scenario::Regress{1, {}};
  const std::map<std::string, GateRule> rules = {{"weights_bytes", r}};
  GateContext gate;
  gate.rules = &rules;
  std::vector<RunRecord> runs(6, run(kPassed));
  const double values[] = {100, 100, 100, 100, 100, 1000};  // one outlier on B's side
  for (int i = 0; i < 6; ++i)
    runs[static_cast<std::size_t>(i)].figures["weights_bytes"] = values[i];
  EXPECT_EQ(judge_ab({&runs[0], &runs[1], &runs[2]}, {&runs[3], &runs[4], &runs[5]}, gate).verdict,
            V::kPass);
}

TEST(Ab, WhatAAlreadyShowsIsNotNew) {
  GateRule none;
  none.new_count = 0;
  const std::map<std::string, GateRule> rules = {{"compiles_after_ready", none}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord a = run(kPassed, "A"), b = run(kPassed);
  a.sets["compiles_after_ready"] = {"K"};
  b.sets["compiles_after_ready"] = {"K"};
  EXPECT_EQ(ab(a, b, gate), V::kPass);
  b.sets["compiles_after_ready"].push_back("L");
  EXPECT_EQ(ab(a, b, gate), V::kFail);
}

// One seed asks both sides the same, so a server's words can be held against the other's.
TEST(Ab, AnswersOfAServer) {
  const auto served = [](const std::string& variant, const char* second) {
    contract::testing::TraceBuilder t;
    t.add("hello", {{"schema", "events/1.0"}, {"engine", "t"}, {"pid", 1}, {"emits", {"request"}}},
          0, "http");
    t.add("request", {{"id", "greedy-1"}, {"ok", true}, {"text_sha256", "aaaa"}}, 0, "http");
    t.add("request", {{"id", "greedy-2"}, {"ok", true}, {"text_sha256", second}}, 0, "http");
    t.add("request", {{"id", "greedy-3"}, {"ok", false}, {"text_sha256", "cccc"}}, 0, "http");
    RunRecord out = run(kPassed, variant);
    out.trace = t;
    collect_figures(contract::View(out.trace), out);
    return out;
  };
  GateRule none;
  none.new_count = 0;
  const std::map<std::string, GateRule> rules = {{"answers", none}};
  GateContext gate;
  gate.rules = &rules;
  const RunRecord a = served("A", "bbbb");
  EXPECT_EQ(a.sets.at("answers"), (std::vector<std::string>{"greedy-1 aaaa", "greedy-2 bbbb"}));
  EXPECT_EQ(ab(a, served("B", "bbbb"), gate), V::kPass);
  const RunRecord other = served("B", "dddd");
  const RunVerdict v = judge_ab({&a}, {&other}, gate);
  EXPECT_EQ(v.verdict, V::kFail);
  EXPECT_EQ(v.checks.back().note, "greedy-2 dddd");
}

}  // namespace
}  // namespace warmgate::verdict
