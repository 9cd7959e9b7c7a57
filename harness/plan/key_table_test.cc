#include "harness/plan/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace warmgate::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void add(trace::Trace& trace, const std::string& line) {
  trace.events.push_back(trace::parse_event(line));
}

void compile(trace::Trace& trace, const std::string& key, const std::string& arch,
             const std::string& status, const std::string& more = "") {
  add(trace, R"({"ev":"compile","t":1,"rank":0,"kernel":"K","key":")" + key + R"(","arch":")" +
                 arch + R"(","source":"compiler","status":")" + status + "\"" + more + "}");
}

trace::Trace sample() {
  trace::Trace trace;
  const std::string warmup = R"(,"phase":"warmup")",
                    ours = R"(,"src":"harness","log":"\nk.cu(1): error: no")";
  compile(trace, "K{R=0}", "sm_90a", "ok", warmup);  // a lenient compiler
  compile(trace, "K{R=4}", "sm_90a", "ok", warmup);
  compile(trace, "K{R=0}", "sm_80", "failed", ours);
  compile(trace, "K{R=4}", "sm_80", "ok", R"(,"src":"harness")");
  compile(trace, "K{R=9}", "sm_90a", "ok", R"(,"phase":"serve")");  // late
  add(trace, R"({"ev":"check","t":2,"rank":null,"src":"harness","tensor":"K{R=0}","kind":"host_key",
      "kernel":"K","ok":false,"fault":"division_by_zero","message":"1 / 0"})");
  add(trace,
      R"({"ev":"check","t":2,"src":"harness","tensor":"K{R=4}","kind":"host_key","ok":true})");
  add(trace, R"({"ev":"check","t":2,"tensor":"some tensor","kind":"numerics"})");
  add(trace, R"({"ev":"launch","t":3,"rank":0,"kernel":"K","key":"K{R=9}","phase":"serve"})");
  add(trace,
      R"({"ev":"launch","t":4,"rank":0,"kernel":"K","key":"K{R=9}","phase":"serve","final":true,
      "count":12})");
  add(trace, R"({"ev":"launch","t":4,"rank":0,"kernel":"gemm","key":"","phase":"serve"})");
  add(trace, R"({"ev":"launch","t":4,"rank":0,"kernel":"K","key":"K{R=4}","phase":"warmup"})");
  add(trace,
      R"({"ev":"domain","t":5,"rank":0,"kernel":"K","keys":["K{R=4}","K{R=9}","K{R=128}"]})");
  return trace;
}

TEST(KeyTable, CountsSideBySide) {
  const KeyTable table = key_table(sample(), {"sm_90a", "sm_80", "sm_120a"});
  ASSERT_EQ(table.kernels.size(), 1u);
  const KernelKeys& k = table.kernels[0];
  EXPECT_EQ(k.asked(), 2u);
  EXPECT_EQ(k.reachable(), 3u);
  EXPECT_EQ(k.launched(), 1u);
  EXPECT_EQ(k.invalid(), 1u);
  EXPECT_EQ(k.launched_not_warmed(), 1u);
  EXPECT_EQ(k.asked_not_reachable(), 1u);
  EXPECT_THAT(table.archs, ElementsAre("sm_90a", "sm_80", "sm_120a"));
  EXPECT_THAT(table.not_observed, ElementsAre(HasSubstr("sm_120a")));
}

TEST(KeyTable, EachArchitectureAndTheHostSpeakForThemselves) {
  const KeyTable table = key_table(sample(), {});
  const KeyRow& bad = table.kernels[0].rows[0];
  EXPECT_EQ(bad.key, "K{R=0}");
  EXPECT_EQ(bad.archs.at("sm_90a"), KeyState::kOk);  // the lenient one said nothing
  EXPECT_EQ(bad.archs.at("sm_80"), KeyState::kBroken);
  EXPECT_EQ(bad.host, KeyState::kBroken);
  EXPECT_TRUE(bad.invalid());
  EXPECT_EQ(bad.why, "division_by_zero: 1 / 0");
  EXPECT_FALSE(table.kernels[0].rows[1].invalid());
  EXPECT_EQ(table.kernels[0].rows[2].launches, 12);
}

TEST(KeyTable, WithoutACompilerTheHostHalfIsNoArchitecture) {
  trace::Trace trace;
  compile(trace, "K{R=0}", "sm_90a", "failed",
          R"(,"phase":"warmup","backend":"host","log":"1 / 0")");
  const KeyTable table = key_table(trace, {"sm_90a"});
  EXPECT_EQ(table.kernels[0].rows[0].host, KeyState::kBroken);
  EXPECT_TRUE(table.kernels[0].rows[0].archs.empty());
  EXPECT_THAT(table.not_observed, ElementsAre(HasSubstr("sm_90a")));
  const auto json = to_json(table);
  EXPECT_EQ(json["kernels"][0]["keys"][0]["architectures"]["sm_90a"], "not observed");
  EXPECT_TRUE(json["kernels"][0]["reachable"].is_null());  // nobody told the domain
}

TEST(KeyTable, WhatWarmupAskedForAndNeverCompiledIsNotWarmed) {
  trace::Trace trace;
  add(trace, R"({"ev":"asked","t":1,"rank":0,"kernel":"K","keys":["K{R=0}","K{R=4}"]})");
  compile(trace, "K{R=0}", "sm_90a", "failed", R"(,"phase":"warmup")");
  compile(trace, "K{R=7}", "sm_80", "ok", R"(,"src":"harness")");  // of another variant
  add(trace, R"({"ev":"launch","t":3,"rank":0,"kernel":"K","key":"K{R=4}","phase":"serve"})");
  const KeyTable table = key_table(trace, {});
  const KernelKeys& k = table.kernels[0];
  EXPECT_EQ(k.asked(), 2u);
  EXPECT_EQ(k.warmed(), 0u);  // one was never compiled, the other failed to
  EXPECT_EQ(k.never_compiled(), 1u);
  EXPECT_EQ(to_json(table)["kernels"][0]["asked"], 2);
  EXPECT_EQ(to_json(table)["kernels"][0]["warmed"], 0);
  EXPECT_EQ(k.invalid(), 1u);
  EXPECT_EQ(k.launched_not_warmed(), 1u);
}

TEST(KeyTable, AnEmptyTraceIsAnEmptyTable) {
  const KeyTable table = key_table({}, {});
  EXPECT_TRUE(table.kernels.empty());
  EXPECT_TRUE(to_json(table)["kernels"].is_array());
}

}  // namespace
}  // namespace warmgate::plan
