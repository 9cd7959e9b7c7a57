#include <gtest/gtest.h>

#include "harness/engine/ops/compressor.h"
#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/device.h"
#include "harness/engine/ops/indexer.h"
#include "harness/engine/ops/metadata.h"
#include "harness/engine/ops/output_projection.h"
#include "harness/engine/ops/query_key.h"
#include "harness/engine/ops/sparse_attention.h"
#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

Tensor bf16(Shape shape) { return make_tensor(DType::kBf16, shape, 512); }
Tensor i32(Shape shape) { return make_tensor(DType::kI32, shape, 512); }

TEST(Tensor, BytesStridesAndSlices) {
  const Tensor t = make_tensor(DType::kBf16, {8, 4, 16}, 1024);
  EXPECT_EQ(t.bytes, 8 * 4 * 16 * 2);
  EXPECT_EQ(t.strides[0], 64);
  const Tensor s = t.slice(3, 2);
  EXPECT_EQ(s.rows(), 2);
  EXPECT_EQ(s.address, 1024u + 3 * 64 * 2);
  EXPECT_EQ(make_tensor(DType::kFp4, {3, 3}).bytes, 5);  // nibbles round up to a byte
  EXPECT_FALSE(i32({4}).slice(1, 1).aligned16());
  EXPECT_TRUE(i32({8}).slice(4, 1).aligned16());
}

TEST(Tensor, RoundingHelpers) {
  EXPECT_EQ(round_up(0, 576), 0);
  EXPECT_EQ(round_up(37376, 576), 37440);
  EXPECT_EQ(pow2_at_least(0), 1);
  EXPECT_EQ(pow2_at_least(129), 256);
}

TEST(Signature, NamesClassesAndAlignment) {
  SignatureKey key;
  key(bf16({2, 2}));
  key(i32({8}).slice(1, 1));
  key(std::int64_t{1});
  key(std::int64_t{0});
  key(std::int64_t{7});
  key(Tensor{});
  EXPECT_EQ(key.text(), "bf16[2]T,i32[1]F,one,div16,any,bf16[0]T");
}

TEST(Signature, CacheGrowsAndKeepsAddresses) {
  SignatureCache cache;
  std::vector<const std::string*> seen;
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      for (int rank = 1; rank <= 4; ++rank) {
        SignatureKey key;
        Tensor t = make_tensor(static_cast<DType>(a), {1, 1, 1, 1});
        t.rank = static_cast<std::uint8_t>(rank);
        key(t);
        key(make_tensor(static_cast<DType>(b), {1}));
        seen.push_back(&cache.text(key));
        EXPECT_EQ(seen.back(), &cache.text(key));
      }
    }
  }
  EXPECT_EQ(cache.size(), 256u);
  EXPECT_EQ(*seen.front(), "bf16[1]T,bf16[1]T");
}

TEST(Ops, GemmCountsAndRefuses) {
  const ops::Gemm good{"g", bf16({3, 256}), make_tensor(DType::kFp8, {384, 256}), bf16({3, 384})};
  EXPECT_FALSE(can_run(good));
  const Cost cost = account(good);
  // Weights one byte an element and one scale byte a 128x128 block.
  EXPECT_EQ(cost.bytes, 3 * 256 * 2 + 384 * 256 + 3 * 2 + 3 * 384 * 2);
  EXPECT_EQ(cost.flops, 2 * 3 * 256 * 384);
  EXPECT_TRUE(can_run(ops::Gemm{"g", bf16({3, 255}), good.w, good.y}));
  EXPECT_TRUE(can_run(ops::Gemm{"g", good.x, good.w, bf16({3, 383})}));
  EXPECT_TRUE(can_run(ops::Gemm{"g", good.x, good.w, bf16({2, 384})}));
}

TEST(Ops, HeadsArePaddedTo64Or128) {
  EXPECT_EQ(ops::padded_heads(0), 0);
  EXPECT_EQ(ops::padded_heads(1), 64);
  EXPECT_EQ(ops::padded_heads(64), 64);
  EXPECT_EQ(ops::padded_heads(65), 128);
  EXPECT_EQ(ops::padded_heads(128), 128);
  EXPECT_EQ(ops::padded_heads(129), 0);
  EXPECT_FALSE(can_run(ops::PadQ{bf16({2, 65, 8}), bf16({2, 128, 8})}));
  EXPECT_TRUE(can_run(ops::PadQ{bf16({2, 65, 8}), bf16({2, 64, 8})}));
  EXPECT_TRUE(can_run(ops::PadQ{bf16({2, 129, 8}), bf16({2, 256, 8})}));
}

ops::SparseDecode decode(std::int64_t heads, std::int64_t width) {
  return {bf16({5, 1, heads, 512}),
          make_tensor(DType::kU8, {9, 64, 584}),
          i32({8, 1, width}),
          i32({8}),
          {},
          {},
          {},
          make_tensor(DType::kFp32, {heads}),
          bf16({5, heads, 512})};
}

TEST(Ops, DecodeTakesTwoHeadCountsAndWidthsOfThem) {
  EXPECT_FALSE(can_run(decode(64, 128)));
  EXPECT_FALSE(can_run(decode(64, 192)));
  EXPECT_FALSE(can_run(decode(128, 256)));
  EXPECT_TRUE(can_run(decode(128, 192)));
  EXPECT_TRUE(can_run(decode(64, 129)));
  EXPECT_TRUE(can_run(decode(32, 128)));
  ops::SparseDecode extra = decode(64, 128);
  extra.extra_cache = make_tensor(DType::kU8, {9, 2, 584});
  EXPECT_TRUE(can_run(extra));  // pages without indices
  extra.extra_indices = i32({8, 1, 512});
  extra.extra_lens = i32({8});
  EXPECT_FALSE(can_run(extra));
  EXPECT_GT(account(extra).bytes, account(decode(64, 128)).bytes);
  extra.extra_indices = i32({4, 1, 512});
  EXPECT_TRUE(can_run(extra));  // five queries, four rows
}

TEST(Ops, GatherStaysInsideItsRows) {
  ops::DequantGather p{
      10, 10, 6, make_tensor(DType::kU8, {9, 64, 584}), {}, {}, bf16({1, 16, 512})};
  EXPECT_FALSE(can_run(p));
  p.offset = 7;
  EXPECT_TRUE(can_run(p));
}

TEST(Ops, DraftInputsAreBounded) {
  const Tensor rows = make_tensor(DType::kI64, {2048});
  EXPECT_FALSE(can_run(ops::PrepareDraftInputs{2048, rows, rows, {}, {}}));
  const Reason reason = can_run(ops::PrepareDraftInputs{7168, rows, rows, {}, {}});
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("7168"), std::string::npos);
  EXPECT_NE(reason->find("2048"), std::string::npos);
}

TEST(Ops, CompressorAccountsForOverlap) {
  ops::CompressWindow p{"c",
                        8,
                        2,
                        4,
                        1,
                        512,
                        make_tensor(DType::kFp32, {5, 4, 2048}),
                        {},
                        bf16({512}),
                        {},
                        make_tensor(DType::kU8, {5, 64, 584}),
                        make_tensor(DType::kI64, {8}),
                        {},
                        {}};
  EXPECT_FALSE(can_run(p));
  EXPECT_EQ(p.window_rows(), 8);
  EXPECT_EQ(account(p).bytes, 2 * (8 * 2 * 512 * 4 + 584) + 64);
  p.overlap = 0;
  EXPECT_TRUE(can_run(p));  // a state row of another width
}

TEST(Ops, TopkKernelByArchitectureAndRows) {
  using ops::decode_topk_kernel;
  EXPECT_EQ(decode_topk_kernel("sm_90a", 512, 32, 1024), "cooperative_topk");
  EXPECT_EQ(decode_topk_kernel("sm_90a", 512, 33, 1024), "persistent_topk");
  EXPECT_EQ(decode_topk_kernel("sm_90a", 512, 32, 1023), "persistent_topk");
  EXPECT_EQ(decode_topk_kernel("sm_120a", 512, 1, 1024), "persistent_topk");
  EXPECT_EQ(decode_topk_kernel("sm_80", 1024, 1, 1024), "persistent_topk");
  EXPECT_EQ(decode_topk_kernel("sm_100a", 256, 1, 1024), "top_k_per_row_decode");
}

TEST(Ops, FlatteningByArchitecture) {
  EXPECT_FALSE(ops::flattens_queries("sm_100a", 8));
  EXPECT_FALSE(ops::flattens_queries("sm_90a", 1));
  EXPECT_FALSE(ops::flattens_queries("sm_90a", 2));
  EXPECT_TRUE(ops::flattens_queries("sm_90a", 8));
}

TEST(Ops, OnlyKnownDevices) {
  EXPECT_FALSE(device_named("meta").executes());
  EXPECT_THROW(device_named("cuda"), std::runtime_error);
  EXPECT_THROW(device_named(""), std::runtime_error);
}

TEST(Executor, RefusesWithTheReasonAndCounts) {
  testing::Rank rank(testing::small({0}));
  Executor exec(rank.context);
  const LayerRef layer{3, "swaonly", "target"};
  rank.phase("serve", [&] {
    const ops::PadQ good{bf16({16, 8, 512}), bf16({16, 64, 512})};
    execute(exec, layer, good);
    execute(exec, layer, good);
    EXPECT_EQ(exec.cost().launches, 2);
    try {
      execute(exec, layer, ops::PadQ{bf16({16, 8, 512}), bf16({16, 8, 512})});
      FAIL() << "a head count that no kernel takes";
    } catch (const OpRefused& refused) {
      EXPECT_EQ(refused.layer.id, 3);
      EXPECT_EQ(refused.kernel, "pad_q");
      EXPECT_NE(std::string(refused.what()).find("64 or 128"), std::string::npos);
    }
    EXPECT_EQ(exec.cost().launches, 2);  // what cannot run costs nothing
  });
  const auto launches = rank.events("launch");
  ASSERT_EQ(launches.size(), 1u);  // folded
  EXPECT_EQ(launches[0]["kernel"], "pad_q");
  EXPECT_EQ(launches[0]["signature"], "bf16[3]T,bf16[3]T");
  const auto counts = rank.events("phase_end").at(0)["launches"];  // [site, count, rows]
  EXPECT_EQ(counts.at(0).at(1), 2);
  EXPECT_EQ(counts.at(0).at(2), 32);
}

}  // namespace
}  // namespace warmgate::engine
