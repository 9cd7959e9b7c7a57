#include "harness/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace warmgate::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void add(trace::Trace& trace, const char* line) {
  trace.events.push_back(trace::parse_event(line));
}

verdict::RunRecord record() {
  verdict::RunRecord run;
  run.variant = "B";
  run.outcome = verdict::Outcome::kPassed;
  add(run.trace,
      R"({"ev":"phase_end","t":1,"rank":0,"phase":"profile","status":"ok","peak_bytes":300,
      "persistent_bytes":200,"transient_peak_bytes":100,"pools":{"weights":{"live":200,"peak":250},
      "old style":7,"odd":"x"}})");
  add(run.trace,
      R"({"ev":"phase_end","t":1,"rank":1,"phase":"profile","status":"ok","peak_bytes":300,
      "persistent_bytes":200,"transient_peak_bytes":100,"pools":{"weights":{"live":200,"peak":250},
      "old style":7}})");
  add(run.trace, R"({"ev":"phase_end","t":2,"rank":0,"phase":"ready","status":"ok"})");
  add(run.trace, R"({"ev":"kv","t":3,"rank":0,"bytes":95007340800,"blocks":94795,"tokens":9222468,
      "concurrency":8.795,"blocks_per_request":10778,"block_stride":1002240,"groups":[
      {"name":"full_mla","layers":["a","b"],"bytes":1002240,"block_tokens":256,"blocks_per_request":4096},
      {"name":"swa_a","layers":23,"bytes":861120,"block_tokens":64,"blocks_per_request":259}, 5]})");
  add(run.trace,
      R"({"ev":"workspace_plan","t":4,"rank":0,"layer_kind":"c128a","consumer":"attention",
      "reserved":1,"needed":9})");
  add(run.trace,
      R"({"ev":"workspace_plan","t":5,"rank":0,"layer_kind":"c128a","consumer":"attention",
      "reserved":88638464,"needed":340296704})");
  add(run.trace, R"({"ev":"workspace_plan","t":5,"rank":1,"layer_kind":"c4a","consumer":"attention",
      "reserved":1,"needed":1})");
  return run;
}

TEST(Plan, ReadsWhatTheEngineSaid) {
  const Plan plan = plan_of(record());
  ASSERT_EQ(plan.phases.size(), 1u);  // a phase that took nothing has nothing to say
  EXPECT_EQ(plan.phases[0].peak_bytes, 300);
  EXPECT_EQ(plan.phases[0].pools.at("weights"), (PoolUse{200, 250}));
  EXPECT_EQ(plan.phases[0].pools.at("old style"), (PoolUse{7, 7}));
  EXPECT_THAT(plan.other_ranks, IsEmpty());
  ASSERT_TRUE(plan.capacity.has_value());
  EXPECT_EQ(plan.capacity->blocks_per_request, 10778);
  EXPECT_EQ(plan.capacity->tokens, 9222468);
  ASSERT_EQ(plan.capacity->groups.size(), 2u);
  EXPECT_EQ(plan.capacity->groups[0].layers, 2);
  EXPECT_EQ(plan.capacity->groups[1].layers, 23);
  ASSERT_EQ(plan.workspace.size(), 1u);  // the later word of one consumer, of rank 0
  EXPECT_EQ(plan.workspace[0].shortfall(), 251658240);
  EXPECT_EQ(plan.stopped, "");
  EXPECT_THAT(plan.not_observed, IsEmpty());
}

TEST(Plan, RanksThatDifferAreNamed) {
  verdict::RunRecord run = record();
  run.trace.events[1].body.set("peak_bytes", 301);
  EXPECT_THAT(plan_of(run).other_ranks, ElementsAre(1));
}

TEST(Plan, WhatIsMissingIsSaidNotInvented) {
  verdict::RunRecord run;
  run.outcome = verdict::Outcome::kCrashed;
  run.phase = "load";
  run.reason = "it broke";
  const Plan plan = plan_of(run);
  EXPECT_FALSE(plan.capacity.has_value());
  EXPECT_EQ(plan.stopped, "crashed in load: it broke");
  EXPECT_EQ(plan.not_observed.size(), 3u);
  EXPECT_TRUE(to_json(plan)["kv"].is_null());
}

TEST(Plan, EqualPlansAreSaidOnce) {
  run::ScenarioResult result;
  for (const char* name : {"A", "B", "C"}) {
    run::VariantResult variant;
    variant.variant.name = name;
    variant.runs.push_back(record());
    if (std::string(name) == "B") variant.runs[0].trace.events[0].body.set("peak_bytes", 1);
    result.variants.push_back(variant);
  }
  result.variants.emplace_back();  // never ran
  const auto plans = plans_of(result);
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_THAT(plans[0].variants, ElementsAre("A", "C"));
  EXPECT_THAT(plans[1].variants, ElementsAre("B"));
}

}  // namespace
}  // namespace warmgate::plan
