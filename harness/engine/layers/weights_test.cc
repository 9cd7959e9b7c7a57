#include "harness/engine/layers/weights.h"

#include <gtest/gtest.h>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

using Dim = std::vector<std::int64_t>;

std::map<std::string, std::pair<Dim, DType>> shapes(const scenario::Resolved& config, Kind kind) {
  std::map<std::string, std::pair<Dim, DType>> out;
  for (const WeightSpec& w : layer_weights(make_dims(config), config.model, kind, false)) {
    Dim dims(w.tensor.shape.begin(), w.tensor.shape.begin() + w.tensor.rank);
    out[std::string(w.name)] = {dims, w.tensor.dtype};
  }
  return out;
}

TEST(Weights, FlashShapesOnOneRank) {
  const auto w = shapes(testing::flash(), Kind::kC4a);
  const std::map<std::string, std::pair<Dim, DType>> expected = {
      {"fused_wqa_wkv", {{1536, 4096}, DType::kFp8}},
      {"q_norm", {{1024}, DType::kBf16}},
      {"kv_norm", {{512}, DType::kBf16}},
      {"wq_b", {{32768, 1024}, DType::kFp8}},
      {"wo_a", {{8192, 4096}, DType::kFp8}},
      {"wo_b", {{4096, 8192}, DType::kFp8}},
      {"attn_sink", {{64}, DType::kFp32}},
      {"compressor.fused_wkv_wgate", {{2048, 4096}, DType::kBf16}},
      {"compressor.ape", {{4, 1024}, DType::kFp32}},
      {"compressor.norm", {{512}, DType::kBf16}},
      {"indexer.wq_b", {{8192, 1024}, DType::kFp8}},
      {"indexer.weights_proj", {{64, 4096}, DType::kBf16}},
      {"indexer.compressor.fused_wkv_wgate", {{512, 4096}, DType::kBf16}},
      {"indexer.compressor.ape", {{4, 256}, DType::kFp32}},
      {"indexer.compressor.norm", {{128}, DType::kBf16}}};
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(w.count(name)) << name;
    EXPECT_EQ(w.at(name), shape) << name;
  }
}

TEST(Weights, ProShapesOnOneRank) {
  const auto w = shapes(testing::pro(), Kind::kC128a);
  EXPECT_EQ(w.at("fused_wqa_wkv").first, (Dim{2048, 7168}));
  EXPECT_EQ(w.at("wq_b").first, (Dim{65536, 1536}));
  EXPECT_EQ(w.at("wo_a").first, (Dim{16384, 4096}));
  EXPECT_EQ(w.at("wo_b").first, (Dim{7168, 16384}));
  EXPECT_EQ(w.at("attn_sink").first, (Dim{128}));
  EXPECT_EQ(w.at("compressor.fused_wkv_wgate").first, (Dim{1024, 7168}));
  EXPECT_EQ(w.at("compressor.ape").first, (Dim{128, 512}));
  EXPECT_FALSE(w.count("indexer.wq_b"));
}

TEST(Weights, ShardingOverEightRanks) {
  auto config = testing::flash();
  config.parallel.tp = 8;
  const auto w = shapes(config, Kind::kC4a);
  EXPECT_EQ(w.at("fused_wqa_wkv").first, (Dim{1536, 4096}));  // replicated
  EXPECT_EQ(w.at("wq_b").first, (Dim{4096, 1024}));           // by head
  EXPECT_EQ(w.at("wo_a").first, (Dim{1024, 4096}));           // by group
  EXPECT_EQ(w.at("wo_b").first, (Dim{4096, 1024}));           // by row
  EXPECT_EQ(w.at("attn_sink").first, (Dim{64}));              // padded heads
  EXPECT_EQ(w.at("indexer.wq_b").first, (Dim{8192, 1024}));
  EXPECT_EQ(w.at("experts.w13").first, (Dim{256, 512, 4096}));
}

TEST(Weights, QuantisedOnesCarryTheirScales) {
  for (const WeightSpec& w :
       layer_weights(make_dims(testing::flash()), testing::flash().model, Kind::kSwaOnly, false)) {
    if (w.name == "wo_b") {
      EXPECT_EQ(w.bytes, 4096 * 8192 + 32 * 64);
    }
    if (w.name == "experts.w2") {
      EXPECT_EQ(w.bytes, 256ll * 4096 * 2048 / 2 + 256ll * 4096 * 2048 / 32);
    }
    if (w.name == "attn_sink") {
      EXPECT_EQ(w.bytes, 256);
    }
  }
}

TEST(Weights, KindsDifferInWhatTheyHave) {
  EXPECT_FALSE(shapes(testing::flash(), Kind::kSwaOnly).count("compressor.ape"));
  EXPECT_TRUE(shapes(testing::flash(), Kind::kC128a).count("compressor.ape"));
  auto config = testing::flash();
  EXPECT_TRUE(drafter_weights(make_dims(testing::flash(false)), testing::flash(false)).empty());
  std::set<std::string> names;
  for (const auto& w : drafter_weights(make_dims(config), config)) names.emplace(w.name);
  EXPECT_TRUE(names.count("main_proj"));
  EXPECT_TRUE(names.count("markov_w2"));
  EXPECT_FALSE(names.count("eh_proj"));
}

TEST(Dims, ImpossibleShardingIsRefusedWithNumbers) {
  const auto refuses = [](auto change) {
    auto config = testing::flash();
    change(config);
    EXPECT_THROW(make_dims(config), std::runtime_error);
  };
  refuses([](auto& c) { c.parallel.tp = 16; });  // above o_groups
  refuses([](auto& c) { c.parallel.tp = 3; });
  refuses([](auto& c) { c.parallel.tp = 0; });
  refuses([](auto& c) { c.model.num_attention_heads = 192; });  // 192 on one rank
  refuses([](auto& c) { c.model.num_attention_heads = 0; });
  refuses([](auto& c) { c.model.compress_ratios[2] = 8; });
  refuses([](auto& c) { c.limits.max_num_seqs = 0; });
  auto config = testing::flash();
  config.model.num_attention_heads = 192;
  config.parallel.tp = 2;
  EXPECT_EQ(make_dims(config).padded_heads, 128);
}

TEST(Dims, DraftLayersAreWindowOnlyWhateverTheListSays) {
  auto config = testing::flash();
  config.model.compress_ratios.back() = 128;
  EXPECT_EQ(scenario::effective_ratio(config.model, 45), 1);
  EXPECT_FALSE(make_dims(testing::small({0, 0})).has(Kind::kC128a));
}

}  // namespace
}  // namespace warmgate::engine
