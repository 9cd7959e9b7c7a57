// Metadata builders: whose buffers, how large, when; and the host integers they keep.
#include "harness/engine/layers/metadata.h"

#include <gtest/gtest.h>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

std::map<std::string, std::vector<std::int64_t>> kv_allocs(const scenario::Resolved& config,
                                                           const std::string& pool) {
  testing::Rank rank(config);
  rank.start();
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const auto& e : rank.events("alloc")) {
    if (e["phase"] != "kv" || e["pool"] != pool) continue;
    out[e["owner"].get<std::string>()].push_back(e["bytes"]);
  }
  return out;
}

TEST(Metadata, TargetBuffersAtFullScale) {
  const auto allocs = kv_allocs(testing::flash(), "metadata");
  const auto bytes = [&](const char* owner) {
    return allocs.count(owner) ? allocs.at(owner).front() : -1;
  };
  EXPECT_EQ(bytes("swa.token_to_req_indices"), 8192 * 4);
  EXPECT_EQ(bytes("swa.decode_swa_indices"), 8192 * 128 * 4);
  EXPECT_EQ(bytes("swa.prefill_swa_indices"), 8192 * 128 * 4);
  EXPECT_EQ(bytes("swa.is_valid_token"), 8192);
  EXPECT_EQ(bytes("sparse_mla.c128a_global_decode_buffer"), 256 << 20);
  EXPECT_EQ(bytes("sparse_mla.c128a_prefill_buffer"), 256 << 20);
  EXPECT_EQ(bytes("sparse_mla.c128a_decode_lens_buffer"), 8192 * 4);
  // H100 flattens 1+N = 8 queries into rows of their own.
  EXPECT_EQ(bytes("indexer.expanded_block_table"), 8192ll * 4096 * 4);
  EXPECT_EQ(bytes("indexer.schedule"), round_up(133 * 2 * 4, 512));
  EXPECT_FALSE(allocs.count("swa.decode_swa_indices_noncausal"));
}

TEST(Metadata, DraftHasItsOwnWindowBuildersAndNothingElse) {
  const auto allocs = kv_allocs(testing::flash(), "draft_metadata");
  EXPECT_TRUE(allocs.count("swa.decode_swa_indices"));
  for (const auto& [owner, bytes] : allocs) EXPECT_EQ(owner.rfind("swa.", 0), 0u) << owner;
  EXPECT_TRUE(kv_allocs(testing::flash(false), "draft_metadata").empty());
}

TEST(Metadata, BuffersOfKindsThatAreNotThereDoNotExist) {
  const auto allocs = kv_allocs(testing::small({0, 0}), "metadata");
  for (const auto& [owner, bytes] : allocs) {
    EXPECT_EQ(owner.rfind("sparse_mla", 0), std::string::npos) << owner;
    EXPECT_EQ(owner.rfind("indexer", 0), std::string::npos) << owner;
  }
  auto blackwell = testing::small({4});
  blackwell.architectures = {"sm_100a"};
  EXPECT_FALSE(kv_allocs(blackwell, "metadata").count("indexer.expanded_block_table"));
}

class SparseSlots : public ::testing::Test {
 protected:
  SparseSlots()
      : rank_(testing::small({4, 128})),
        exec_(rank_.context),
        dims_(make_dims(rank_.config)),
        modules_(cache_modules(dims_, {Kind::kC4a, Kind::kC128a})),
        groups_(group_caches(modules_)),
        cache_(rank_.memory, dims_, modules_, groups_,
               plan_kv_cache(dims_, modules_, groups_, 1'000'000'000)),
        inputs_(InputBuffers::make({rank_.memory, "b"}, dims_, "b")) {}

  std::vector<std::int64_t> build(SparseMetadata& sparse, const Batch& batch) {
    StepHost host;
    host.build(batch, dims_);
    const SwaMetadata window({rank_.memory, "b"}, dims_, 1, Role::kTarget);
    sparse.build(exec_, host, split_batch(host.batch, 1, false), cache_, inputs_, window, false);
    const auto all = sparse.host_slots();
    EXPECT_EQ(all[static_cast<std::size_t>(host.tokens)], -1);
    return {all.begin(), all.begin() + host.tokens};
  }
  testing::Rank rank_;
  Executor exec_;
  Dims dims_;
  std::vector<CacheModule> modules_;
  std::vector<CacheGroup> groups_;
  KvCache cache_;
  InputBuffers inputs_;
};

TEST_F(SparseSlots, OfTwoRequestsAndNothingStale) {
  ASSERT_TRUE(cache_.tables().grow(0, 300));
  ASSERT_TRUE(cache_.tables().grow(1, 300));
  const std::int64_t first = cache_.tables().row(0, 0)[0], second = cache_.tables().row(0, 1)[0];
  SparseMetadata c4({rank_.memory, "b"}, dims_, 0, Kind::kC4a);
  SparseMetadata c128({rank_.memory, "b"}, dims_, 0, Kind::kC128a);
  const Batch batch{{{0, 126, 2}, {1, 2, 6}}, false};
  EXPECT_EQ(build(c4, batch), (std::vector<std::int64_t>{-1, first * 64 + 31, -1, second * 64, -1,
                                                         -1, -1, second * 64 + 1}));
  EXPECT_EQ(build(c128, batch), (std::vector<std::int64_t>{-1, first * 2, -1, -1, -1, -1, -1, -1}));
  // A shorter step, and a dummy one.
  EXPECT_EQ(build(c4, {{{1, 3, 1}}, false}), (std::vector<std::int64_t>{second * 64}));
  EXPECT_EQ(build(c4, {{{1, 3, 1}}, true}), (std::vector<std::int64_t>{-1}));
}

}  // namespace
}  // namespace warmgate::engine
