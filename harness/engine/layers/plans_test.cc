// The host-side decisions of a step: split, chunks, widths.
#include <gtest/gtest.h>

#include "harness/engine/layers/batch_split.h"
#include "harness/engine/layers/indexer_plan.h"
#include "harness/engine/layers/metadata.h"
#include "harness/engine/layers/prefill_plan.h"
#include "harness/engine/layers/step_host.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

std::vector<BatchRequest> queries(std::initializer_list<std::int64_t> lengths) {
  std::vector<BatchRequest> out;
  for (const std::int64_t q : lengths) {
    out.push_back({static_cast<std::int64_t>(out.size()), 100, q});
  }
  return out;
}

TEST(Thresholds, OfAttentionAndIndexer) {
  EXPECT_EQ(make_dims(testing::flash()).decode_threshold(), 15);
  EXPECT_EQ(make_dims(testing::flash()).indexer_threshold(), 8);
  EXPECT_EQ(make_dims(testing::flash(false)).decode_threshold(), 1);
  auto mtp = testing::flash(false);
  testing::add_drafter(mtp, "mtp", 3);
  EXPECT_EQ(make_dims(mtp).decode_threshold(), 4);
  EXPECT_EQ(make_dims(mtp).indexer_threshold(), 4);
}

TEST(SplitBatch, TheFirstLongQueryEndsTheDecodes) {
  const Split s = split_batch(queries({1, 15, 16, 1}), 15, false);
  EXPECT_EQ(s.decodes, 2);
  EXPECT_EQ(s.decode_tokens, 16);
  EXPECT_EQ(s.prefills, 2);
  EXPECT_EQ(s.prefill_tokens, 17);
  EXPECT_EQ(split_batch({}, 1, false).decodes, 0);
  EXPECT_EQ(split_batch(queries({16}), 15, false).decodes, 0);
}

TEST(SplitBatch, UniformDecodesShareTheFirstLength) {
  EXPECT_EQ(split_batch(queries({8, 8, 8}), 8, true).decodes, 3);
  EXPECT_EQ(split_batch(queries({8, 1, 8}), 8, true).decodes, 1);
  EXPECT_EQ(split_batch(queries({8, 1, 8}), 8, false).decodes, 3);
  EXPECT_EQ(split_batch(queries({9, 8}), 8, true).decodes, 0);
}

TEST(StepHost, PaddingComesLastAndShapesAreThoseOfTheGraph) {
  const Dims dims = make_dims(testing::small({0, 4, 128}));
  Batch batch;
  batch.requests = {{0, 50, 1}, {1, 9, 1}, {2, 30, 1}};
  batch.pad_to = 8;
  batch.shape_length = 400;
  StepHost host;
  host.build(batch, dims);
  EXPECT_EQ(host.tokens, 8);
  EXPECT_EQ(host.real_tokens, 3);
  EXPECT_EQ(host.requests, 8);
  EXPECT_EQ(host.real_requests, 3);
  EXPECT_EQ(host.batch[3].request, kPadding);
  EXPECT_EQ(host.device_positions, (std::vector<std::int64_t>{50, 9, 30, 0, 0, 0, 0, 0}));
  EXPECT_EQ(host.max_seq_len, 51) << "branches are those of the requests";
  EXPECT_EQ(host.shape_seq_len, 400);
  batch.branch_length = 300;  // a graph that assumes the longest context
  host.build(batch, dims);
  EXPECT_EQ(host.max_seq_len, 300);
  batch.pad_to = 2;  // nothing to pad
  host.build(batch, dims);
  EXPECT_EQ(host.tokens, 3);
  EXPECT_EQ(host.real_tokens, 3);
}

TEST(StepHost, IntegersOfAMixedStep) {
  const Dims dims = make_dims(testing::small({0, 4, 128}));
  StepHost host;
  host.build({{{3, 127, 1}, {1, 0, 130}, {2, 200, 6}}, false}, dims);
  EXPECT_EQ(host.tokens, 137);
  EXPECT_EQ(host.max_seq_len, 206);
  EXPECT_EQ(host.max_query_len, 130);
  EXPECT_EQ(host.query_start, (std::vector<std::int32_t>{0, 1, 131, 137}));
  EXPECT_EQ(host.seq_lens, (std::vector<std::int32_t>{128, 130, 206}));
  // query + min(prefix, 127): prefix 127, 0, and 200.
  EXPECT_EQ(host.gather_lens, (std::vector<std::int32_t>{128, 130, 133}));
  EXPECT_EQ(host.token_to_req[0], 0);
  EXPECT_EQ(host.token_to_req[130], 1);
  EXPECT_EQ(host.token_to_req[131], 2);
  EXPECT_EQ(host.positions[136], 205);
  EXPECT_EQ(host.swa_starts[0], 0);  // position 127 sees all 128
  EXPECT_EQ(host.swa_lens[0], 128);
  EXPECT_EQ(host.swa_starts[129], 1);  // position 128
  EXPECT_EQ(host.swa_lens[129], 128);
  EXPECT_EQ(host.swa_lens[1], 1);
  EXPECT_EQ(host.windows128, 2);         // positions 127 and 127
  EXPECT_EQ(host.windows4, 1 + 32 + 1);  // 127; 3..127; 203
}

TEST(StepHost, LimitsAreEnforcedWithNumbers) {
  const Dims dims = make_dims(testing::small({0}, 256, 64, 2));
  StepHost host;
  EXPECT_NO_THROW(host.build({{{0, 192, 64}}, false}, dims));
  EXPECT_THROW(host.build({{{0, 193, 64}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, 0, 65}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, 0, 1}, {1, 0, 64}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, 0, 1}, {1, 0, 1}, {1, 0, 1}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{2, 0, 1}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, 0, 0}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, -1, 1}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, INT64_MAX, 1}}, false}, dims), std::out_of_range);
  EXPECT_THROW(host.build({{{0, 0, INT64_MAX}}, false}, dims), std::out_of_range);
}

std::vector<PrefillChunk> plan(std::vector<std::int32_t> seq, std::vector<std::int32_t> gather,
                               std::int64_t ratio, std::int64_t limit) {
  std::vector<std::int32_t> query(seq.size(), 10);
  std::vector<PrefillChunk> chunks;
  plan_prefill_chunks(seq, gather, query, ratio, limit, chunks);
  return chunks;
}

TEST(PrefillPlan, ExtendsWhileTheProductFits) {
  // Nc 25, M 75: two fit 150, a third does not.
  const auto two = plan({100, 100, 100}, {50, 50, 50}, 4, 150);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].end, 2);
  EXPECT_EQ(two[0].compressed, 25);
  EXPECT_EQ(two[0].rows, 75);
  EXPECT_EQ(two[0].gathered_compressed, 50);
  EXPECT_EQ(two[0].gathered_window, 100);
  EXPECT_EQ(two[0].tokens, 20);
  EXPECT_EQ(two[1].token_begin, 20);
  EXPECT_EQ(plan({100, 100, 100}, {50, 50, 50}, 4, 149).size(), 3u);
  // Many short requests share one chunk: more than four.
  EXPECT_EQ(plan(std::vector<std::int32_t>(9, 8), std::vector<std::int32_t>(9, 8), 4, 1000).size(),
            1u);
}

TEST(PrefillPlan, TheLongestOfEachPartCounts) {
  // Longest compressed part and longest window part come from different requests.
  const auto chunks = plan({400, 40}, {10, 90}, 4, 2 * (100 + 90));
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].rows, 190);
  EXPECT_EQ(plan({400, 40}, {10, 90}, 4, 2 * 190 - 1).size(), 2u);
}

TEST(PrefillPlan, ALoneRequestIsAChunkWhateverItsSize) {
  EXPECT_EQ(plan({1000000}, {8192}, 4, 1).size(), 1u);
  EXPECT_TRUE(plan({}, {}, 4, 1).empty());
  EXPECT_EQ(plan({1000}, {100}, 1, 1).at(0).compressed, 0);  // window only: nothing compressed
}

TEST(PrefillPlan, ChunksStartAnywhere) {
  const auto chunks = plan({64, 64, 64, 64, 64, 64, 64}, std::vector<std::int32_t>(7, 64), 1, 192);
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[1].begin, 3);  // not a multiple of four
}

std::vector<IndexerChunk> index_plan(std::vector<std::int32_t> seq, std::vector<std::int32_t> query,
                                     std::int64_t keys, std::int64_t logits_bytes) {
  std::vector<IndexerChunk> chunks;
  plan_indexer_chunks(seq, query, 4, keys, logits_bytes, chunks);
  return chunks;
}

TEST(IndexerPlan, KeysBoundAChunk) {
  const auto chunks = index_plan({400, 400, 400}, {1, 1, 1}, 200, 1 << 20);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].keys, 200);
  EXPECT_EQ(chunks[0].end, 2);
  EXPECT_EQ(chunks[0].slice_stop, 2);
  EXPECT_EQ(chunks[1].token_begin, 2);
  EXPECT_EQ(index_plan({400, 400, 400}, {1, 1, 1}, 199, 1 << 20).size(), 3u);
}

TEST(IndexerPlan, LogitsBoundAChunk) {
  // Together 20 queries x 200 keys x 4 bytes.
  EXPECT_EQ(index_plan({400, 400}, {10, 10}, 1000, 16000).size(), 1u);
  EXPECT_EQ(index_plan({400, 400}, {10, 10}, 1000, 15999).size(), 2u);
}

TEST(IndexerPlan, AnOversizedRequestIsCutAlongItsQueries) {
  const auto chunks = index_plan({400}, {10}, 1000, 1200);  // 100 keys: three queries at a time
  ASSERT_EQ(chunks.size(), 4u);
  EXPECT_TRUE(chunks[0].gathers);
  EXPECT_FALSE(chunks[1].gathers);
  EXPECT_EQ(chunks[1].slice_start, 3);
  EXPECT_EQ(chunks[3].slice_start, 9);
  EXPECT_EQ(chunks[3].slice_stop, 10);
  EXPECT_EQ(index_plan({400}, {2}, 1000, 1).size(), 2u);  // one query at least
}

TEST(IndexerPlan, ChunksWithoutKeysAreDropped) {
  EXPECT_TRUE(index_plan({3}, {3}, 100, 1 << 20).empty());
  EXPECT_EQ(index_plan({4}, {4}, 100, 1 << 20).size(), 1u);
  EXPECT_EQ(index_plan({3, 4}, {3, 4}, 100, 1 << 20).at(0).keys, 1);
  EXPECT_TRUE(index_plan({}, {}, 100, 1 << 20).empty());
}

TEST(IndexerPlan, MillionTokenPromptStaysInsideTheLogits) {
  const Dims dims = make_dims(testing::flash());
  const auto chunks = index_plan({1048576}, {8192}, dims.indexer_gather_rows(), kMaxLogitsBytes);
  ASSERT_EQ(chunks.size(), 16u);
  for (const auto& c : chunks) {
    EXPECT_LE(c.queries() * c.keys * 4, kMaxLogitsBytes);
    EXPECT_LE(c.keys, dims.indexer_gather_rows());
  }
}

TEST(C128aWidth, FullStrideOrPacked) {
  const Dims dims = make_dims(testing::flash());
  EXPECT_EQ(dims.c128a_stride(), 8192);
  EXPECT_EQ(c128a_width(dims, 1, false), 8192);
  EXPECT_EQ(c128a_width(dims, 1, true), 128);
  EXPECT_EQ(c128a_width(dims, 128 * 128, true), 128);
  EXPECT_EQ(c128a_width(dims, 128 * 129, true), 256);
  EXPECT_EQ(c128a_width(dims, 1048576, true), 8192);
  // A stride that is no power of two caps it.
  EXPECT_EQ(c128a_width(make_dims(testing::small({128}, 49152)), 49152, true), 384);
}

}  // namespace
}  // namespace warmgate::engine
