#include "harness/verdict/allow.h"

#include <gtest/gtest.h>

#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;

scenario::Allow entry(const std::string& contract, const std::string& match) {
  scenario::Allow a;
  a.contract = contract;
  a.match = match;
  a.reason = "known";
  a.where = "s.yaml:9";
  return a;
}

TEST(Allow, MovesWhatItListsAndKeepsTheRest) {
  RunRecord r = run(Outcome::kPassed, "B[tp=2]");
  r.contracts = {broken("keys-covered", {"K{R=128,W=1}", "K{R=4,W=1}"}),
                 broken("keys-valid", {"K{R=128,W=1}"})};
  apply_allow({entry("keys-covered", "K{R=128,*")}, "2026-08-01", r);
  EXPECT_EQ(r.contracts[0].state, contract::State::kBroken);
  ASSERT_EQ(r.contracts[0].findings.size(), 1u);
  EXPECT_EQ(r.contracts[0].findings[0].key, "K{R=4,W=1}");
  EXPECT_EQ(r.contracts[1].findings.size(), 1u);  // another contract's
  ASSERT_EQ(r.allowed.size(), 1u);
  EXPECT_EQ(r.allowed[0].reason, "known");
  EXPECT_EQ(r.allowed[0].where, "s.yaml:9");
  apply_allow({entry("keys-covered", "*")}, "", r);
  EXPECT_EQ(r.contracts[0].state, contract::State::kKept);
  EXPECT_EQ(r.contracts[0].why, "1 finding allowed; 1 finding allowed");
}

TEST(Allow, NotesToo) {
  RunRecord r = run(Outcome::kPassed);
  r.contracts = {kept("keys-reachable")};
  r.contracts[0].notes = {finding("keys-reachable", "K")};
  apply_allow({entry("keys-reachable", "K")}, "", r);
  EXPECT_TRUE(r.contracts[0].notes.empty());
  EXPECT_EQ(r.allowed.size(), 1u);
  EXPECT_EQ(r.contracts[0].why, "");
}

TEST(Allow, VariantsAndUntil) {
  scenario::Allow a = entry("c", "*");
  EXPECT_TRUE(applies(a, "A", ""));
  a.variants = {"B"};
  EXPECT_FALSE(applies(a, "A", ""));
  EXPECT_TRUE(applies(a, "B", ""));
  EXPECT_TRUE(applies(a, "B[tp=2]", ""));
  a.variants = {"B[tp=2]"};
  EXPECT_FALSE(applies(a, "B[tp=4]", ""));
  EXPECT_TRUE(applies(a, "B[tp=2]", ""));
  a.until = "2026-08-10";
  EXPECT_TRUE(applies(a, "B[tp=2]", "2026-08-10"));  // the day itself
  EXPECT_FALSE(applies(a, "B[tp=2]", "2026-08-11"));
  EXPECT_TRUE(applies(a, "B[tp=2]", ""));  // no clock
}

TEST(Allow, AnExpiredEntryIsAFindingAndAllowsNothing) {
  scenario::Allow a = entry("keys-covered", "*");
  a.until = "2026-01-01";
  RunRecord r = run(Outcome::kFailed);
  r.contracts = {broken("keys-covered", {"K"})};
  apply_allow({a}, "2026-08-01", r);
  EXPECT_EQ(r.contracts[0].findings.size(), 1u);
  const auto checks = check_allow({a}, {&r}, true, "2026-08-01");
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].verdict, Verdict::kFail);
  EXPECT_NE(checks[0].seen.find("expired"), std::string::npos);
  // Also when only some variants ran: a date needs no run.
  EXPECT_EQ(check_allow({a}, {}, false, "2026-08-01").at(0).verdict, Verdict::kFail);
}

RunRecord allowed_run(const std::string& variant) {
  RunRecord r = run(Outcome::kPassed, variant);
  r.contracts = {broken("keys-covered", {"K"})};
  apply_allow({entry("keys-covered", "K")}, "", r);
  return r;
}

RunRecord clean_run(const std::string& variant, contract::Result result,
                    Outcome outcome = Outcome::kPassed) {
  RunRecord r = run(outcome, variant);
  r.contracts = {std::move(result)};
  return r;
}

TEST(CheckAllow, TableOfWhatItCouldHaveMatched) {
  const std::vector<scenario::Allow> allow = {entry("keys-covered", "K")};
  const RunRecord matched = allowed_run("B");
  const RunRecord judged = clean_run("B", kept("keys-covered"));
  const RunRecord blind = clean_run("C", unseen("keys-covered"));
  const RunRecord crashed = clean_run("A", unseen("keys-covered"), Outcome::kCrashed);
  const RunRecord infra = clean_run("A", unseen("keys-covered"), Outcome::kInfra);
  struct Row {
    std::vector<const RunRecord*> runs;
    bool all;
    int right;  // -1: no check
  };
  const int fail = static_cast<int>(Verdict::kFail), skip = static_cast<int>(Verdict::kSkip);
  const std::vector<Row> table = {
      {{&matched}, true, -1},
      {{&matched, &judged}, true, -1},    // one variant is enough
      {{&judged}, true, fail},            // matches nothing any more
      {{&judged}, false, skip},           // the others might have shown it
      {{&judged, &crashed}, true, fail},  // a crash shows nothing either way
      {{&judged, &infra}, true, fail},
      {{&judged, &blind}, true, skip},  // not observed where it could match
      {{&blind}, true, skip},
      {{&crashed}, true, skip},
      {{}, true, skip},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto checks = check_allow(allow, table[i].runs, table[i].all, "");
    if (table[i].right < 0) {
      EXPECT_TRUE(checks.empty()) << i;
    } else {
      ASSERT_EQ(checks.size(), 1u) << i;
      EXPECT_EQ(static_cast<int>(checks[0].verdict), table[i].right) << i << checks[0].seen;
    }
  }
}

TEST(CheckAllow, OnlyItsVariantsCount) {
  scenario::Allow a = entry("keys-covered", "K");
  a.variants = {"B"};
  const RunRecord c = clean_run("C", kept("keys-covered"));
  EXPECT_EQ(check_allow({a}, {&c}, true, "").at(0).verdict, Verdict::kSkip);
}

}  // namespace
}  // namespace warmgate::verdict
