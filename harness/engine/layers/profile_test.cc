// Profiling: which resources are asked of which layers, what is reserved, what fails and where.
#include <gtest/gtest.h>

#include <set>

#include "harness/engine/layers/resources.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/ops/execute.h"
#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

scenario::Resolved dspark(const std::string& topk_bound, const std::string& buffer) {
  auto config = testing::flash();
  config.seams["profile.topk_bound"] = topk_bound;
  config.drafter.topk_indices_buffer = buffer;
  return config;
}

TEST(Profile, DraftLayersWithoutTheBufferFailWhereItIsRequired) {
  testing::Rank rank(dspark("buffer_required", "absent"));
  try {
    rank.start();
    FAIL() << "the draft owns no top-k buffer";
  } catch (const ResourceMissing& missing) {
    EXPECT_EQ(missing.resource, "topk_indices_buffer");
    EXPECT_EQ(missing.layer.id, 43);  // the first draft layer
    EXPECT_EQ(missing.layer.kind, "swaonly");
    EXPECT_EQ(missing.layer.role, "draft");
    EXPECT_NE(missing.file.find("attention_profile.cc"), std::string::npos);
    EXPECT_GT(missing.line, 0);
  }
  // The trace says the same as the exception.
  std::vector<nlohmann::json> missing;
  for (const auto& e : rank.events("requires")) {
    if (!e["owned"].get<bool>()) missing.push_back(e);
  }
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0]["layer"], 43);
  EXPECT_EQ(missing[0]["phase"], "profile");
  for (const auto& e : rank.events("layer")) {
    if (e["layer"] != 43) continue;
    EXPECT_EQ(e["owns"], (std::vector<std::string>{"swa_cache", "attn_sink"}));
    EXPECT_EQ(e["role"], "draft");
    EXPECT_EQ(e["ratio"], 1);
  }
  EXPECT_EQ(rank.events("phase_end").back()["status"], "failed");
  EXPECT_EQ(rank.events("workspace_plan").size(), 4u);  // known before the forward fails
}

TEST(Profile, PassesWithTheFixOrWithTheBufferThatMaskedIt) {
  testing::Rank fixed(dspark("kind_aware", "absent"));
  fixed.start();
  testing::Rank masked(dspark("buffer_required", "own"));
  masked.start();
  // The fix changes no reservation.
  EXPECT_EQ(fixed.workspace.capacity(0), masked.workspace.capacity(0));
  EXPECT_EQ(fixed.plan.tokens, 9222468);
  std::set<int> asked;
  for (const auto& e : fixed.events("requires")) {
    if (e["resource"] == "topk_indices_buffer") asked.insert(e["layer"].get<int>());
  }
  EXPECT_FALSE(asked.count(0));  // window only
  EXPECT_TRUE(asked.count(2));
  EXPECT_FALSE(asked.count(43));
}

TEST(Profile, ReservesWhatThePlanSays) {
  for (const auto& ratios : std::vector<std::vector<std::int64_t>>{{0}, {4}, {128}, {0, 4, 128}}) {
    testing::Rank rank(testing::small(ratios, 65536));
    rank.start();
    std::int64_t largest = 0;
    for (const WorkspaceRow& row : workspace_plan(rank.config)) {
      largest = std::max(largest, row.reserved);
    }
    EXPECT_EQ(rank.workspace.capacity(0), round_up(largest, 512));
  }
}

TEST(Profile, PlanIsInTheTrace) {
  auto config = testing::flash();
  config.seams["workspace.reservation"] = "topk_buffer_width";
  testing::Rank rank(config);
  rank.start();
  const auto rows = rank.events("workspace_plan");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[2]["layer_kind"], "c128a");
  EXPECT_LT(rows[2]["reserved"], rows[2]["needed"]);
}

TEST(Profile, TransientLogitsAreInThePeakOnly) {
  testing::Rank rank(testing::small({4}));
  rank.start();
  for (const auto& e : rank.events("phase_end")) {
    if (e["phase"] != "profile") continue;
    EXPECT_GE(e["transient_peak_bytes"], 512 << 20);
    EXPECT_EQ(e["pools"]["activations"]["live"], 0);
  }
}

TEST(Profile, DraftBatchBeyondTheInputBuffersIsRefusedByTheOp) {
  auto config = testing::flash();
  config.limits.max_num_batched_tokens = 2048;
  config.limits.max_model_len = 65536;
  testing::Rank clamped(config);
  clamped.start();
  config.seams["profile.draft_batch"] = "unclamped";
  testing::Rank unclamped(config);
  try {
    unclamped.start();
    FAIL() << "1024 x 7 tokens in buffers of 2048 rows";
  } catch (const OpRefused& refused) {
    EXPECT_EQ(refused.kernel, "prepare_dflash_inputs");
    EXPECT_NE(std::string(refused.what()).find("7168"), std::string::npos);
    EXPECT_NE(std::string(refused.what()).find("2048"), std::string::npos);
  }
  // At 8192 rows the same formula fits.
  config.limits.max_num_batched_tokens = 8192;
  testing::Rank fits(config);
  fits.start();
}

TEST(Profile, TouchesNoCacheAndNoMetadata) {
  testing::Rank rank(testing::flash());
  rank.start();
  for (const auto& e : rank.events("launch")) {
    if (e["phase"] != "profile") continue;
    const std::string kernel = e["kernel"];
    EXPECT_EQ(kernel.find("insert"), std::string::npos) << kernel;
    EXPECT_EQ(kernel.find("slot"), std::string::npos) << kernel;
    EXPECT_EQ(kernel.find("flash_mla"), std::string::npos) << kernel;
  }
  for (const auto& e : rank.events("requires")) {
    EXPECT_NE(e["resource"], "swa_cache");
    EXPECT_NE(e["resource"], "state_cache");
  }
  // Metadata buffers come with the KV cache, so the profile never saw them.
  for (const auto& e : rank.events("alloc")) {
    if (e["pool"] == "metadata" || e["pool"] == "draft_metadata") {
      EXPECT_EQ(e["phase"], "kv");
    }
  }
}

TEST(Profile, OutOfMemoryNamesTheOwner) {
  auto config = testing::small({0});
  config.limits.device_memory_bytes = 1'000'000'000;
  testing::Rank rank(config);
  EXPECT_THROW(rank.start(), OutOfMemory);
}

TEST(Profile, NeedsLoadAndLimits) {
  testing::Rank rank(testing::small({0}));
  EngineModel model(rank.context);
  EXPECT_THROW(model.profile_forward(1, 1), std::logic_error);
  model.load_target();
  EXPECT_THROW(model.profile_forward(513, 1), std::out_of_range);
  EXPECT_THROW(model.profile_forward(1, 17), std::out_of_range);
  EXPECT_THROW(model.profile_forward(0, 1), std::out_of_range);
  EXPECT_THROW(model.step({{{0, 0, 1}}, true}, false), std::logic_error);
}

}  // namespace
}  // namespace warmgate::engine
