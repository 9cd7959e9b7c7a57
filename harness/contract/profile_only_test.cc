#include "harness/contract/profile_only.h"

#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

TraceBuilder& ask(TraceBuilder& t, const char* phase, const char* role, const char* resource) {
  t.begin(phase);
  t.add("requires", {{"layer", role == std::string("draft") ? 43 : 0},
                     {"layer_kind", "swaonly"},
                     {"role", role},
                     {"resource", resource},
                     {"owned", true}});
  return t.end(phase);
}

TEST(ProfileOnly, WhatMaskedTheFaultIsNoted) {
  TraceBuilder t;
  t.hello()
      .layer(0, "swaonly", "target", {"topk_indices_buffer", "swa_cache"})
      .layer(43, "swaonly", "draft", {"topk_indices_buffer", "swa_cache"});
  ask(t, "profile", "draft", "topk_indices_buffer");
  ask(t, "warmup", "draft", "swa_cache");
  ask(t, "profile", "target", "topk_indices_buffer");
  ask(t, "serve", "target", "topk_indices_buffer");
  const Result result = judge_named("owned-resources", t);
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);  // the target's is asked for again in serve
  EXPECT_EQ(result.notes[0].role, "draft");
  EXPECT_EQ(result.notes[0].key, "topk_indices_buffer");
  EXPECT_NE(result.notes[0].message.find("may mask a fault"), std::string::npos);
}

TEST(ProfileOnly, NothingIsSaidOfLayersThatTookPartInNoLaterPhase) {
  TraceBuilder t;
  t.hello().layer(43, "swaonly", "draft", {"topk_indices_buffer"});
  ask(t, "profile", "draft", "topk_indices_buffer");
  EXPECT_TRUE(judge_named("owned-resources", t).notes.empty());
}

}  // namespace
}  // namespace warmgate::contract
