#include "harness/engine/model.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/engine/testing_steps.h"

namespace warmgate::engine {
namespace {

using testing::keys;
using testing::launches;
using testing::Launches;
using testing::serve;

TEST(Model, ADecodeStepOfEachKind) {
  testing::Rank rank(testing::small({0, 4, 128}));
  rank.start();
  rank.phase("serve", [&] { serve(rank, 4095, 1); });
  const Launches seen = launches(rank, "serve");
  for (const char* kind : {"swaonly", "c4a", "c128a"}) {
    EXPECT_TRUE(seen.count({kind, "fused_qnorm_rope_kv_insert"})) << kind;
    EXPECT_TRUE(seen.count({kind, "flash_mla_sparse_decode"})) << kind;
    EXPECT_TRUE(seen.count({kind, "flash_mla_sched_meta"})) << kind;
    EXPECT_FALSE(seen.count({kind, "flash_mla_sparse_fwd"})) << kind;
  }
  EXPECT_TRUE(seen.count({"c4a", "fp8_fp4_paged_mqa_logits"}));
  EXPECT_TRUE(seen.count({"c4a", "cooperative_topk"}));
  EXPECT_TRUE(seen.count({"c4a", "compute_global_topk_indices_and_lens"}));
  EXPECT_TRUE(seen.count({"c128a", "compress_c128_insert"}));  // 4095 ends a window
  EXPECT_FALSE(seen.count({"swaonly", "save_partial_states"}));
}

TEST(Model, APrefillStepOfEachKind) {
  testing::Rank rank(testing::small({0, 4, 128}));
  rank.start();
  rank.phase("serve", [&] { serve(rank, 3000, 400); });
  const Launches seen = launches(rank, "serve");
  for (const char* kind : {"swaonly", "c4a", "c128a"}) {
    EXPECT_TRUE(seen.count({kind, "flash_mla_sparse_fwd"})) << kind;
    EXPECT_TRUE(seen.count({kind, "dequantize_and_gather_k"})) << kind;
    EXPECT_TRUE(seen.count({kind, "CombineTopkSwaIndices"})) << kind;
    EXPECT_FALSE(seen.count({kind, "flash_mla_sparse_decode"})) << kind;
  }
  EXPECT_TRUE(seen.count({"c4a", "fp8_fp4_mqa_logits"}));
  EXPECT_TRUE(seen.count({"c4a", "cp_gather_indexer_k_quant_cache"}));
  EXPECT_EQ(keys(rank, "ComputePrefillMetadata").size(), 1u);
  EXPECT_EQ(keys(rank, "BuildPrefillChunkMetadata").size(), 1u);
}

TEST(Model, ShortContextsAreNotScored) {
  // K = 512: up to 2051 tokens all compressed entries are chosen.
  for (const auto& [length, scored] :
       std::vector<std::pair<std::int64_t, bool>>{{1, false}, {2051, false}, {2052, true}}) {
    testing::Rank rank(testing::small({4}));
    rank.start();
    rank.phase("serve", [&] { serve(rank, length - 1, 1); });
    const Launches seen = launches(rank, "serve");
    EXPECT_EQ(seen.count({"c4a", "fill_short_context_topk_indices"}), scored ? 0u : 1u) << length;
    EXPECT_EQ(seen.count({"c4a", "fp8_fp4_paged_mqa_logits"}), scored ? 1u : 0u) << length;
    EXPECT_TRUE(seen.count({"c4a", "indexer_compress_fp8"}));  // keys are stored all the same
  }
}

TEST(Model, C128CompressionRunsWhereAWindowEnds) {
  for (const auto& [position, runs] : std::vector<std::pair<std::int64_t, bool>>{
           {0, false}, {126, false}, {127, true}, {128, false}, {255, true}}) {
    testing::Rank rank(testing::small({128}));
    rank.start();
    rank.phase("serve", [&] { serve(rank, position, 1); });
    const Launches seen = launches(rank, "serve");
    EXPECT_EQ(seen.count({"c128a", "compress_c128_insert"}), runs ? 1u : 0u) << position;
    EXPECT_TRUE(seen.count({"c128a", "save_partial_states"}));
  }
}

TEST(Model, WarmedShortAndServedLongReachDifferentCode) {
  testing::Rank rank(testing::flash());
  rank.start();
  // With DSpark and N = 7 a query of 15 is still decode for attention, 16 is not.
  rank.phase("warmup", [&] { serve(rank, 0, 15); });
  EXPECT_FALSE(launches(rank, "warmup").count({"c4a", "flash_mla_sparse_fwd"}));
  rank.phase("serve", [&] { serve(rank, 15, 16); });
  EXPECT_TRUE(launches(rank, "serve").count({"c4a", "flash_mla_sparse_fwd"}));
}

TEST(Model, AttentionAndIndexerMayDisagree) {
  // Ten tokens: decode for attention (<= 15), prefill for the indexer (> 8).
  testing::Rank rank(testing::flash());
  rank.start();
  rank.phase("serve", [&] { serve(rank, 4000, 10); });
  const Launches seen = launches(rank, "serve");
  EXPECT_TRUE(seen.count({"c4a", "flash_mla_sparse_decode"}));
  EXPECT_FALSE(seen.count({"c4a", "flash_mla_sparse_fwd"}));
  EXPECT_TRUE(seen.count({"c4a", "top_k_per_row_prefill"}));
  EXPECT_FALSE(seen.count({"c4a", "fp8_fp4_paged_mqa_logits"}));
}

TEST(Model, CombineKeysFollowTheChunkStart) {
  // Window parts of 163 and 158 rows: fifteen requests share the 2,560 rows of a chunk, so that the
  // second chunk starts at request 15.
  const auto alignments = [](std::int64_t decodes) {
    testing::Rank rank(testing::small({0}, 8192, 512, 20));
    rank.start();
    rank.phase("serve", [&] {
      Batch batch;
      batch.dummy = true;
      for (std::int64_t r = 0; r < decodes; ++r) batch.requests.push_back({r, 900, 1});
      for (std::int64_t r = 0; r < 16; ++r) {
        batch.requests.push_back({decodes + r, 900, r == 0 ? 36 : 31});
      }
      rank.model().step(batch, false);
    });
    std::set<std::string> out;
    for (const std::string& key : keys(rank, "CombineTopkSwaIndices")) {
      const std::size_t at = key.find_last_of('=');
      out.insert(key.substr(at + 1, 4));
    }
    return out;
  };
  EXPECT_EQ(alignments(0), (std::set<std::string>{"TTTT", "TFFF"}));
  EXPECT_EQ(alignments(1), (std::set<std::string>{"TFFT", "TTTF"}));
}

TEST(Model, PackedWidthChangesTheCombineKey) {
  auto config = testing::small({128}, 65536);
  const auto width_key = [](const scenario::Resolved& c) {
    testing::Rank rank(c);
    rank.start();
    rank.phase("serve", [&] { serve(rank, 1000, 200); });
    return *keys(rank, "CombineTopkSwaIndices").begin();
  };
  EXPECT_NE(width_key(config).find("TOP_K=512"), std::string::npos);
  config.seams["c128a.width"] = "packed";
  EXPECT_NE(width_key(config).find("TOP_K=128"), std::string::npos);
}

TEST(Model, WindowOnlyPrefillWithoutBufferIsASeam) {
  auto config = testing::small({0});
  testing::add_drafter(config, "mtp", 1);
  config.drafter.topk_indices_buffer = "absent";
  const auto run = [](const scenario::Resolved& c) {
    testing::Rank rank(c);
    rank.start();
    rank.phase("warmup", [&] {
      ASSERT_TRUE(rank.model().grow_request(0, 400));
      rank.model().step({{{0, 0, 300}}, false}, true);
    });
  };
  run(config);
  config.seams["prefill.topk_bound"] = "buffer_required";
  EXPECT_THROW(run(config), ResourceMissing);
  config.drafter.topk_indices_buffer = "own";
  run(config);
}

TEST(Model, DraftBlockMakesItsIndexBufferOnFirstUse) {
  testing::Rank rank(testing::flash());
  rank.start();
  const auto noncausal = [&] {
    std::vector<nlohmann::json> out;
    for (const auto& e : rank.events("alloc")) {
      if (e["owner"] == "swa.decode_swa_indices_noncausal") out.push_back(e);
    }
    return out;
  };
  EXPECT_TRUE(noncausal().empty());
  rank.phase("warmup", [&] {
    ASSERT_TRUE(rank.model().grow_request(0, 200));
    rank.model().step({{{0, 0, 100}}, false}, true);
    rank.model().step({{{0, 100, 8}}, false}, true);
  });
  ASSERT_EQ(noncausal().size(), 2u);  // one a window group: first, then the count
  EXPECT_EQ(noncausal()[0]["bytes"], 8192 * 256 * 4);
  EXPECT_EQ(noncausal()[0]["pool"], "draft_metadata");
  EXPECT_EQ(noncausal()[1]["count"], 2);
  const Launches seen = launches(rank, "warmup");
  EXPECT_TRUE(seen.count({"", "compute_dspark_noncausal_swa_indices"}));
  EXPECT_TRUE(seen.count({"", "markov_bias"}));
}

TEST(Model, WorkspaceHoldsForEachKindAlone) {
  for (const std::int64_t ratio : {0, 4, 128}) {
    testing::Rank rank(testing::small({ratio}, 131072));
    rank.start();
    rank.workspace.lock();
    rank.phase("serve", [&] {
      serve(rank, 131072 - 512, 512);
      serve(rank, 131071, 1);
    });
  }
}

TEST(Model, C128aAloneExceedsAReservationByBufferWidth) {
  auto config = testing::small({128}, 1048576, 8192);
  config.seams["workspace.reservation"] = "topk_buffer_width";
  testing::Rank rank(config);
  rank.start(200'000'000'000);
  rank.workspace.lock();
  // At full stride the index tensor of B rows alone takes 260 MiB of 84.5 reserved.
  EXPECT_THROW(rank.phase("serve", [&] { serve(rank, 1048576 - 8192, 8192); }), WorkspaceLocked);
  // Unlocked, the same request silently moves the buffer.
  rank.workspace.unlock();
  const std::uint64_t base = rank.workspace.base(0);
  rank.phase("serve", [&] { serve(rank, 1048576 - 8192, 8192); });
  EXPECT_NE(rank.workspace.base(0), base);
}

TEST(Model, ARealStepNeedsItsBlocks) {
  testing::Rank rank(testing::small({0, 4}));
  rank.start();
  EngineModel& model = rank.model();
  rank.phase("serve", [&] {
    EXPECT_THROW(model.step({{{0, 0, 1}}, false}, false), std::logic_error);
    ASSERT_TRUE(model.grow_request(0, 256));
    EXPECT_NO_THROW(model.step({{{0, 0, 256}}, false}, false));
    EXPECT_THROW(model.step({{{0, 256, 1}}, false}, false), std::logic_error);
    // The window's old blocks may go; writing there again may not happen.
    model.free_window_blocks(0, 255);
    EXPECT_NO_THROW(model.step({{{0, 255, 1}}, false}, false));
    EXPECT_THROW(model.step({{{0, 0, 1}}, false}, false), std::logic_error);
    model.release_request(0);
    EXPECT_NO_THROW(model.step({{{0, 0, 256}}, true}, false));  // dummy steps have none
  });
}

TEST(Model, StepsBalanceTransientMemory) {
  testing::Rank rank(testing::flash());
  rank.start();
  rank.phase("serve", [&] {
    serve(rank, 0, 5000);
    serve(rank, 5000, 8);
  });
  EXPECT_EQ(rank.memory.pools().at("activations").live, 0);
}

TEST(Model, DraftWorksInItsOwnLaneWhereThereAreTwo) {
  for (const int lanes : {1, 2}) {
    testing::Rank rank(testing::flash(), lanes);
    rank.start();
    std::set<int> draft_lanes;
    for (const auto& e : rank.events("workspace")) {
      if (e["role"] == "draft") draft_lanes.insert(e["lane"].get<int>());
    }
    EXPECT_EQ(draft_lanes, (std::set<int>{lanes - 1}));
  }
}

TEST(Model, Fp4IndexerAndOtherModels) {
  auto fp4 = testing::small({4});
  fp4.model.indexer_cache_dtype = "fp4";
  testing::Rank rank(fp4);
  rank.start();
  rank.phase("serve", [&] {
    serve(rank, 0, 512);
    serve(rank, 7000, 300);
  });
  EXPECT_TRUE(launches(rank, "serve").count({"c4a", "indexer_compress_mxfp4"}));
  auto large = testing::pro();
  large.limits.device_memory_bytes = 2'000'000'000'000;
  testing::Rank pro(large);
  pro.start();
  EXPECT_EQ(pro.plan.block_stride, 1435968);
  pro.phase("serve", [&] { serve(pro, 0, 5000); });
}

TEST(Model, SamplesAreAHashOfSeedRequestAndPosition) {
  testing::Rank a(testing::small({0})), b(testing::small({0}));
  auto other = testing::small({0});
  other.seed = 8;
  testing::Rank c(other);
  EngineModel ma(a.context), mb(b.context), mc(c.context);
  std::set<std::int64_t> distinct;
  bool differs = false;
  for (std::int64_t r = 0; r < 10; ++r) {
    for (std::int64_t p = 0; p < 10; ++p) {
      EXPECT_EQ(ma.sample(r, p), mb.sample(r, p));
      EXPECT_GE(ma.sample(r, p), 0);
      EXPECT_LT(ma.sample(r, p), 129280);
      differs |= ma.sample(r, p) != mc.sample(r, p);
      distinct.insert(ma.sample(r, p));
    }
  }
  EXPECT_GT(distinct.size(), 90u);
  EXPECT_TRUE(differs);
}

TEST(Model, WeightsAreCounted) {
  testing::Rank rank(testing::flash());
  rank.start();
  std::map<std::string, double> counters;
  for (const auto& e : rank.events("counter")) counters[e["name"]] = e["value"];
  // 43 layers of 256 experts of 3·2048·4096 fp4 values and their scales are 147 of them.
  EXPECT_GT(counters.at("weights_bytes"), 147e9);
  EXPECT_LT(counters.at("weights_bytes"), 165e9);
  EXPECT_GT(counters.at("draft_weights_bytes"), 10e9);
  EXPECT_EQ(rank.events("layer").size(), 46u);
}

}  // namespace
}  // namespace warmgate::engine
