#include "harness/engine/memory/kv_plan.h"

#include <gtest/gtest.h>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

std::vector<CacheModule> modules_of(const scenario::Resolved& config) {
  const Dims dims = make_dims(config);
  std::vector<Kind> kinds;
  for (std::int64_t id = 0; id < dims.layers + dims.draft_layers; ++id) {
    kinds.push_back(kind_of_ratio(scenario::effective_ratio(config.model, id)));
  }
  return cache_modules(dims, kinds);
}

std::map<std::string, std::int64_t> group_bytes(const scenario::Resolved& config) {
  std::map<std::string, std::int64_t> out;
  for (const CacheGroup& g : group_caches(modules_of(config))) out[g.name] = g.bytes;
  return out;
}

std::int64_t stride(scenario::Resolved config, bool fp4) {
  if (fp4) config.model.indexer_cache_dtype = "fp4";
  std::int64_t largest = 0;
  for (const auto& [name, bytes] : group_bytes(config)) largest = std::max(largest, bytes);
  return largest;
}

TEST(CacheSpec, PagesAndPadding) {
  struct Case {
    CacheKind kind;
    std::int64_t block, rows, row_bytes, page, padded;
  };
  const Dims fp8 = make_dims(testing::flash());
  for (const Case& c : {Case{CacheKind::kSwa, 64, 64, 584, 37376, 37440},
                        Case{CacheKind::kC4Key, 256, 64, 584, 37376, 37440},
                        Case{CacheKind::kC4IndexerKey, 256, 64, 132, 8448, 8640},
                        Case{CacheKind::kC128Key, 256, 2, 584, 1168, 1728},
                        Case{CacheKind::kC4State, 4, 4, 8192, 32768, 32832},
                        Case{CacheKind::kC4IndexerState, 4, 4, 2048, 8192, 8640},
                        Case{CacheKind::kC128State, 8, 8, 4096, 32768, 32832}}) {
    const CacheSpec s = cache_spec(c.kind, fp8);
    EXPECT_EQ(s.block_tokens, c.block);
    EXPECT_EQ(s.rows, c.rows);
    EXPECT_EQ(s.row_bytes, c.row_bytes);
    EXPECT_EQ(s.page_bytes, c.page);
    EXPECT_EQ(s.padded_bytes, c.padded);
  }
  auto config = testing::flash();
  config.model.indexer_cache_dtype = "fp4";
  const CacheSpec fp4 = cache_spec(CacheKind::kC4IndexerKey, make_dims(config));
  EXPECT_EQ(fp4.row_bytes, 68);
  EXPECT_EQ(fp4.page_bytes, 4352);
  EXPECT_EQ(fp4.padded_bytes, 4608);
}

TEST(KvGroups, FlashWithThreeDraftLayers) {
  const std::map<std::string, std::int64_t> expected = {{"full_mla", 1002240},
                                                        {"c4_state", 870912},
                                                        {"c128_state", 656640},
                                                        {"swa_a", 861120},
                                                        {"swa_b", 861120}};
  EXPECT_EQ(group_bytes(testing::flash()), expected);
}

TEST(KvGroups, FlashAloneAsPrintedUpstream) {
  const auto bytes = group_bytes(testing::flash(false));
  EXPECT_EQ(bytes.at("swa_a"), 22 * 37440);
  EXPECT_EQ(bytes.at("swa_b"), 21 * 37440);
  EXPECT_EQ(bytes.at("full_mla"), 1002240);
}

TEST(KvGroups, Strides) {
  EXPECT_EQ(stride(testing::flash(), false), 1002240);
  EXPECT_EQ(stride(testing::flash(), true), 917568);
  EXPECT_EQ(stride(testing::pro(), false), 1435968);
  EXPECT_EQ(stride(testing::pro(), true), 1315008);
}

TEST(KvGroups, DraftLayersAreInBothWindowGroups) {
  const auto modules = modules_of(testing::flash());
  std::map<std::int64_t, std::string> group_of_layer;
  for (const CacheGroup& group : group_caches(modules)) {
    if (group.cls != CacheClass::kSwa) continue;
    for (const auto& m : group.members) group_of_layer[modules[m.module].layer] = group.name;
  }
  EXPECT_NE(group_of_layer.at(43), group_of_layer.at(44));
  EXPECT_EQ(group_of_layer.at(43), group_of_layer.at(45));
}

TEST(KvGroups, MembersDoNotOverlap) {
  const auto modules = modules_of(testing::flash());
  for (const CacheGroup& group : group_caches(modules)) {
    std::int64_t at = 0;
    for (const auto& m : group.members) {
      EXPECT_EQ(m.offset, at);
      at += modules[m.module].spec.padded_bytes;
    }
    EXPECT_EQ(at, group.bytes);
  }
}

TEST(KvPlan, TheWorkedCapacity) {
  const auto config = testing::flash();
  const auto modules = modules_of(config);
  const KvPlan plan = plan_kv_cache(make_dims(config), modules, group_caches(modules),
                                    *config.limits.kv_pool_bytes);
  EXPECT_EQ(plan.blocks_per_request, 10778);
  EXPECT_EQ(plan.num_blocks, 94795);
  EXPECT_EQ(plan.block_stride, 1002240);
  EXPECT_EQ(plan.tokens, 9222468);
  EXPECT_NEAR(plan.concurrency, 8.7952, 5e-5);
  std::map<std::string, std::int64_t> blocks;
  for (const KvGroup& g : plan.groups) blocks[g.name] = g.blocks_per_request;
  EXPECT_EQ(blocks, (std::map<std::string, std::int64_t>{{"full_mla", 4096},
                                                         {"swa_a", 259},
                                                         {"swa_b", 259},
                                                         {"c4_state", 4099},
                                                         {"c128_state", 2065}}));
}

TEST(KvPlan, TheOtherPublishedCapacity) {
  // vLLM on one H200 with 64K context: 134,709 tokens, 2.06x.
  auto config = testing::flash();
  config.limits.max_model_len = 65536;
  config.limits.max_num_batched_tokens = 2048;
  config.limits.max_num_seqs = 256;
  const auto modules = modules_of(config);
  const KvPlan plan = plan_kv_cache(make_dims(config), modules, group_caches(modules), 4008960000);
  EXPECT_EQ(plan.num_blocks, 4000);
  EXPECT_EQ(plan.tokens, 134709);
  EXPECT_NEAR(plan.concurrency, 2.06, 0.01);
}

TEST(KvPlan, BlocksOfAWindowGroupAtTheEdges) {
  EXPECT_EQ(group_blocks(64, 128, 16384, 1), 2);
  EXPECT_EQ(group_blocks(64, 128, 16384, 64), 2);
  EXPECT_EQ(group_blocks(64, 128, 16384, 65), 3);
  EXPECT_EQ(group_blocks(64, 128, 16384, 1 << 20), 259);
  EXPECT_EQ(group_blocks(256, 0, 16384, 256), 1);
  EXPECT_EQ(group_blocks(256, 0, 16384, 257), 2);
}

TEST(KvPlan, OneRequestMustFit) {
  const auto config = testing::small({0, 4, 128});
  const auto modules = modules_of(config);
  const auto groups = group_caches(modules);
  const Dims dims = make_dims(config);
  const KvPlan plan = plan_kv_cache(dims, modules, groups, 1'000'000'000);
  const std::int64_t least = plan.blocks_per_request * plan.block_stride;
  EXPECT_EQ(plan_kv_cache(dims, modules, groups, least).num_blocks, plan.blocks_per_request);
  EXPECT_THROW(plan_kv_cache(dims, modules, groups, least - 1), std::runtime_error);
  EXPECT_THROW(plan_kv_cache(dims, modules, groups, 0), std::runtime_error);
  EXPECT_THROW(plan_kv_cache(dims, modules, groups, -5), std::runtime_error);
  EXPECT_THROW(plan_kv_cache(dims, {}, {}, 1'000'000'000), std::runtime_error);
}

}  // namespace
}  // namespace warmgate::engine
