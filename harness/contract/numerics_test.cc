#include "harness/contract/numeric_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

struct Checks : TraceBuilder {
  Checks() { hello().begin("serve"); }
  Checks& of(json more, int rank = 0) {
    json body{
        {"tensor", "attention_out"}, {"kind", "numerics"}, {"phase", "serve"}, {"layer", 2},
        {"layer_kind", "c4a"},       {"role", "target"},   {"rows", 4},        {"error", 0.001},
        {"limit", kNumericLimit},    {"exact", false},     {"mismatches", 0},  {"poisoned", 0}};
    body.update(more);
    add("check", body, rank);
    return *this;
  }
  Result judged() { return judge_named("numerics", *this); }
};

TEST(NumericsContract, KeptAtTheVeryLimit) {
  Checks t;
  t.of({{"error", 1.0 / 128}, {"count", 40}}).of({{"error", 0.0}});
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.why, "41 checks; worst: attention_out 0.0078");
}

TEST(NumericsContract, OneFindingATensorWithTheWorst) {
  Checks t;
  t.of({{"error", 0.02}, {"layer", 1}}).of({{"error", 0.5}, {"layer", 3}}).of({{"error", 0.1}});
  t.of({{"error", 0.3}, {"layer_kind", "swaonly"}, {"layer", 0}});
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "c4a/attention_out/error");
  EXPECT_EQ(result.findings[0].layer, 3);
  EXPECT_EQ(result.findings[0].seen, "a row error of 0.500000");
  EXPECT_EQ(result.findings[1].key, "swaonly/attention_out/error");
}

TEST(NumericsContract, AnErrorThatIsNoNumberIsTheWorst) {
  Checks t;
  t.of({{"error", 0.5}}).of({{"error", nullptr}, {"layer", 4}}).of({{"error", 0.6}});
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].layer, 4);
  EXPECT_EQ(result.findings[0].seen, "a row error that is no number");
  Checks absent;
  absent.add("check", {{"tensor", "x"}, {"kind", "numerics"}});
  EXPECT_EQ(absent.judged().state, State::kBroken);
}

TEST(NumericsContract, IntegersLayoutsAndPoison) {
  Checks t;
  t.of({{"tensor", "swa_cache"}, {"exact", true}, {"error", nullptr}, {"mismatches", 3}});
  t.of({{"tensor", "combined_indices"}, {"poisoned", 7}});
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "c4a/combined_indices/poison");
  EXPECT_EQ(result.findings[1].key, "c4a/swa_cache/exact");
  EXPECT_EQ(result.findings[1].seen, "3 elements that differ");
  Checks exact;  // an exact check owes no error
  exact.of({{"tensor", "swa_cache"}, {"exact", true}, {"error", nullptr}});
  EXPECT_EQ(exact.judged().state, State::kKept);
}

TEST(NumericsContract, AClaimThatIsNoNumberIsAClaim) {
  for (const json& wild : {json(1e300), json(18446744073709551615u), json("7"), json(0.5)}) {
    TraceBuilder t = good_end();
    t.add("check",
          {{"tensor", "out"}, {"kind", "numerics"}, {"exact", true}, {"mismatches", wild}});
    EXPECT_EQ(judge_named("numerics", t).state, State::kBroken) << wild;
  }
}

TEST(NumericsContract, NobodyMayLoosenTheLimit) {
  Checks loose;
  loose.of({{"error", 0.4}, {"limit", 0.5}});
  EXPECT_EQ(loose.judged().state, State::kBroken);
  Checks strict;
  strict.of({{"error", 0.002}, {"limit", 0.001}});
  EXPECT_EQ(strict.judged().state, State::kBroken);
  Checks nonsense;
  nonsense.of({{"error", 0.0}, {"limit", -1}});
  EXPECT_EQ(nonsense.judged().state, State::kKept);
}

TEST(NumericsContract, EachRankAlone) {
  Checks t;
  t.of({{"error", 0.5}}, 1).of({{"error", 0.001}}, 0);
  EXPECT_EQ(t.judged().findings.at(0).rank, 1);
}

TEST(NumericsContract, NotObservedWhereNothingRan) {
  EXPECT_EQ(judge_named("numerics", good_end()).state, State::kNotObserved);  // host keys only
  TraceBuilder mute;
  mute.hello(0, {"step"});
  EXPECT_EQ(judge_named("numerics", mute).missing, std::vector<std::string>{"check"});
}

TEST(NumericsContract, WildNumbers) {
  Checks t;
  t.of({{"mismatches", std::numeric_limits<std::int64_t>::min()},
        {"poisoned", std::numeric_limits<std::int64_t>::max()},
        {"count", std::numeric_limits<std::int64_t>::max()}});
  t.of({{"error", -1.0}, {"count", std::numeric_limits<std::int64_t>::max()}});
  EXPECT_EQ(t.judged().state, State::kBroken);
  Checks negative;
  negative.of({{"error", -1.0}});
  EXPECT_EQ(negative.judged().state, State::kBroken) << "no norm is negative";
}

}  // namespace
}  // namespace warmgate::contract
