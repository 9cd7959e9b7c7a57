#include <gtest/gtest.h>

#include <limits>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

struct Steps : TraceBuilder {
  explicit Steps(bool limits = true) {
    hello();
    if (limits)
      add("limits", {{"max_num_batched_tokens", 64}, {"max_num_seqs", 8}, {"max_model_len", 4096}});
    begin("warmup");
  }
  Steps& step(std::int64_t rows, std::int64_t requests, std::int64_t longest,
              std::int64_t draft_rows = 0, const std::string& kind = "dummy") {
    add("step", {{"id", 0},
                 {"kind", kind},
                 {"rows", rows},
                 {"requests", requests},
                 {"longest", longest},
                 {"draft_rows", draft_rows}});
    return *this;
  }
  Result judged(const scenario::Resolved* resolved = nullptr) {
    return judge_named("dummy-legal", *this, resolved);
  }
};

TEST(DummyLegal, TheEnginesOwnLimitsAreNeverLooserThanItsStart) {
  scenario::Resolved resolved;
  resolved.limits.max_num_batched_tokens = 8;
  resolved.limits.max_num_seqs = 8;
  resolved.limits.max_model_len = 8;
  for (const json& said : {json(-1), json(1e300), json(1'000'000)}) {
    TraceBuilder t = good_end();
    t.add("limits", {{"max_num_batched_tokens", said}, {"max_num_seqs", 8}, {"max_model_len", 8}});
    t.add(
        "step",
        {{"id", 9}, {"kind", "dummy"}, {"rows", 1'000'000}, {"requests", 1}, {"phase", "warmup"}});
    EXPECT_EQ(judge_named("dummy-legal", t, &resolved).state, State::kBroken) << said;
  }
}

TEST(DummyLegal, KeptOnEveryLimit) {
  Steps t;
  t.step(64, 8, 4096, 64).step(1, 1, 1, 0);
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.why,
            "reached 64 of 64 max_num_batched_tokens, 8 of 8 max_num_seqs, 4096 of 4096 "
            "max_model_len");
}

TEST(DummyLegal, OneBeyondEachLimit) {
  const auto key_of = [](Steps t) {
    const Result result = t.judged();
    return result.findings.size() == 1 ? result.findings[0].key : std::string("?");
  };
  EXPECT_EQ(key_of(Steps().step(65, 8, 16)), "rows");
  EXPECT_EQ(key_of(Steps().step(16, 9, 16)), "requests");
  EXPECT_EQ(key_of(Steps().step(16, 8, 4097)), "length");
  EXPECT_EQ(key_of(Steps().step(16, 8, 16, 65)), "draft_rows");
  EXPECT_EQ(key_of(Steps().step(3, 4, 16)), "empty_requests");
  EXPECT_EQ(key_of(Steps().step(1, 0, 1)), "requests");
  EXPECT_EQ(Steps().step(0, 0, 0).judged().findings.size(), 3u);
  EXPECT_EQ(key_of(Steps().step(65, 8, 16, 0, "real")), "rows") << "of start-up: all its batches";
}

TEST(DummyLegal, ARealBatchOfServingIsNotItsMatter) {
  Steps t;
  t.step(8, 8, 8).end("warmup").begin("serve");
  t.step(65, 9, 9999, 0, "real");
  EXPECT_EQ(t.judged().state, State::kKept);
  t.step(65, 8, 16, 0, "dummy");  // an idle rank's, in serve
  EXPECT_EQ(t.judged().findings.at(0).phase, "serve");
}

TEST(DummyLegal, LimitsOfTheScenarioWhereTheEngineTellsNone) {
  scenario::Resolved resolved;
  resolved.limits.max_num_batched_tokens = 16;
  resolved.limits.max_num_seqs = 8;
  resolved.limits.max_model_len = 100;
  EXPECT_EQ(Steps(false).step(17, 1, 17).judged(&resolved).findings.at(0).key, "rows");
  EXPECT_EQ(Steps(false).step(16, 1, 16).judged(&resolved).state, State::kKept);
  EXPECT_EQ(Steps(false).step(16, 1, 16).judged().state, State::kNotApplicable);
}

nlohmann::json poison(const char* status, const char* before = "", const char* after = "") {
  nlohmann::json out{{"what", "token_ids"}, {"value", "-1"}, {"status", status}};
  if (*before != 0) out["before"] = before;
  if (*after != 0) out["after"] = after;
  return out;
}

TEST(DummyLegal, ContentsMayNotChangeWhatComesAfterwards) {
  Steps kept;
  kept.step(8, 8, 8).add("poisoned", poison("begin")).add("poisoned", poison("end", "ab", "ab"));
  EXPECT_EQ(kept.judged().state, State::kKept);
  EXPECT_NE(kept.judged().why.find("1 step with poisoned contents"), std::string::npos);
  Steps changed;
  changed.step(8, 8, 8).add("poisoned", poison("begin"));
  changed.add("poisoned", poison("end", "ab", "ac"));
  const Result result = changed.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "contents/token_ids");
  EXPECT_EQ(result.findings[0].detail["after"], "ac");
  Steps silent;  // an end that says nothing has shown nothing
  silent.step(8, 8, 8).add("poisoned", poison("end"));
  EXPECT_EQ(silent.judged().state, State::kBroken);
}

TEST(DummyLegal, AStepThatPoisonKilled) {
  Steps t;
  t.step(8, 8, 8).add("poisoned", poison("begin")).fault("OutOfRange", "token id -1");
  EXPECT_EQ(t.judged().findings.at(0).key, "contents/token_ids");
}

TEST(DummyLegal, AStepThatSomebodyElseKilledSaysNothingOfItsContents) {
  for (const int signal : {9, 15}) {
    Steps t;
    t.step(8, 8, 8).add("poisoned", poison("begin")).signalled(signal, 0, false);
    EXPECT_NE(t.judged().state, State::kBroken) << signal;
  }
  Steps own;  // a fault of its own
  own.step(8, 8, 8).add("poisoned", poison("begin")).signalled(11, 0, false);
  EXPECT_EQ(own.judged().state, State::kBroken);
  Steps hung;
  hung.step(8, 8, 8).add("poisoned", poison("begin"));
  hung.add("deadline", {{"phase", "warmup"}, {"kind", "silence"}, {"after_s", 30}})
      .signalled(9, 0, true);
  EXPECT_EQ(hung.judged().state, State::kBroken);
}

TEST(DummyLegal, OnlyAnEndEndsAndTwoNothingsDoNotAgree) {
  Steps unknown;
  unknown.step(8, 8, 8)
      .add("poisoned", poison("begin"))
      .add("poisoned", poison("midway", "a", "a"));
  EXPECT_EQ(unknown.judged().state, State::kBroken) << "it never ended";
  Steps nothing;
  nothing.step(8, 8, 8).add("poisoned", poison("begin"));
  nothing.add("poisoned", {{"status", "end"},
                           {"what", "token_ids"},
                           {"value", "-1"},
                           {"before", nullptr},
                           {"after", nullptr}});
  EXPECT_EQ(nothing.judged().state, State::kBroken);
}

TEST(DummyLegal, NotObserved) {
  EXPECT_EQ(Steps().judged().state, State::kNotObserved);
  TraceBuilder mute;
  mute.hello(0, {"launch"});
  EXPECT_EQ(judge_named("dummy-legal", mute).missing, std::vector<std::string>{"step"});
}

TEST(DummyLegal, FoldedCountsAndWildNumbers) {
  Steps t;
  t.step(8, 8, 8);
  t.add("step", {{"id", 0}, {"kind", "other"}, {"rows", 99999}, {"requests", 0}});
  t.add("step", {{"id", 0}, {"kind", "dummy"}, {"rows", 99999}, {"requests", 0}, {"final", true}});
  EXPECT_EQ(t.judged().state, State::kKept);
  t.step(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), -1);
  EXPECT_EQ(t.judged().findings.size(), 3u);
}

}  // namespace
}  // namespace warmgate::contract
