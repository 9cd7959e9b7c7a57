// The same tokens give the same bits: however a prompt is cut, whoever shares the step, whatever
// lay in scratch memory before.
#include <gtest/gtest.h>

#include <random>

#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

using testing::executed;
using testing::expect_same;
using testing::Served;

constexpr std::int64_t kPrompt = 300;  // past 256 + 3 tokens the indexer scores

std::uint64_t fresh_seed() {
  const std::uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

class Invariance : public ::testing::TestWithParam<std::vector<std::int64_t>> {
 protected:
  Invariance() : key_(fresh_seed()), whole_(executed(GetParam())) {
    whole_.open(0, key_, kPrompt);
    whole_.all(0, kPrompt);
  }
  std::uint64_t key_;
  Served whole_;
};

TEST_P(Invariance, ChunksOfAnyLengthAreTheWholePrompt) {
  Served served(executed(GetParam()));
  for (const std::int64_t chunk : {3, 4, 5, 63, 64, 65, 127, 128, 129}) {
    served.traces.written.clear();
    served.open(0, key_, kPrompt);
    served.all(0, chunk);
    expect_same(whole_.traces, served.traces, key_, "chunks of " + std::to_string(chunk));
    served.rank.model().release_request(0);
  }
}

TEST_P(Invariance, DecodeIsPrefill) {
  Served served(executed(GetParam()));
  served.open(0, key_, kPrompt);
  served.all(0, 1);
  expect_same(whole_.traces, served.traces, key_, "token by token");
}

TEST_P(Invariance, RandomCutsWithGarbageInScratchMemory) {
  Served served(executed(GetParam()));
  std::mt19937_64 random(key_);
  for (const int garbage : {0x00, 0x01, 0x7F, 0xFF}) {
    served.traces.written.clear();
    served.open(1, key_, kPrompt);
    while (served.left(1) > 0) {
      const auto most = std::min<std::int64_t>(140, served.left(1));
      served.step({{1, 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most))}},
                  garbage);
    }
    expect_same(whole_.traces, served.traces, key_, "garbage " + std::to_string(garbage));
    served.rank.model().release_request(1);
  }
}

TEST_P(Invariance, CompanyInTheStepChangesNothing) {
  Served served(executed(GetParam()));
  std::mt19937_64 random(key_ + 1);
  // Others decode before it, prefill before and after it.
  served.open(3, key_ + 3, 400);
  served.step({{3, 270}});
  served.open(0, key_, kPrompt);
  served.open(5, key_ + 5, 400);
  served.open(2, key_ + 2, 400);
  while (served.left(0) > 0) {
    const auto some = [&](std::int64_t row, std::int64_t most) {
      most = std::min(most, served.left(row));
      return most < 2
                 ? most
                 : 2 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - 1));
    };
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;
    if (served.left(3) > 0) parts.emplace_back(3, 1);
    for (const std::int64_t row : {5, 0, 2}) {
      const std::int64_t count = some(row, row == 0 ? 90 : 60);
      if (count > 1) parts.emplace_back(row, count);
      if (count == 1) parts.insert(parts.begin(), {row, 1});
    }
    served.step(parts, 0xFF);
  }
  expect_same(whole_.traces, served.traces, key_, "in company");
}

INSTANTIATE_TEST_SUITE_P(Kinds, Invariance,
                         ::testing::Values(std::vector<std::int64_t>{0, 0},
                                           std::vector<std::int64_t>{4, 4},
                                           std::vector<std::int64_t>{128, 128},
                                           std::vector<std::int64_t>{0, 4, 128}));

// With a drafter, queries of several tokens take the decode path, and the indexer may see them
// otherwise than attention does.
TEST(InvarianceWithADrafter, DecodesOfSeveralTokens) {
  const std::uint64_t key = fresh_seed();
  Served whole(executed({4, 128}));
  whole.open(0, key, kPrompt);
  whole.all(0, kPrompt);
  for (const char* arch : {"sm_90a", "sm_100a"}) {
    auto config = executed({4, 128});
    testing::add_drafter(config, "dspark", 7);
    config.architectures = {arch};
    Served served(config);
    for (const std::int64_t chunk : {7, 8, 9, 15, 16}) {
      served.traces.written.clear();
      served.open(0, key, kPrompt);
      served.open(1, key + 1, kPrompt);
      while (served.left(0) > 0) {
        const std::int64_t count = std::min(chunk, served.left(0));
        served.step({{0, count}, {1, count}});
      }
      expect_same(whole.traces, served.traces, key, arch + (" by " + std::to_string(chunk)));
      served.rank.model().release_request(0);
      served.rank.model().release_request(1);
    }
  }
}

TEST(InvarianceOfSeams, WidthsAndNumberFormats) {
  const std::uint64_t key = fresh_seed();
  Served whole(executed({128}));
  whole.open(0, key, kPrompt);
  whole.all(0, kPrompt);
  auto packed = executed({128});
  packed.seams["c128a.width"] = "packed";
  Served served(packed);
  served.open(0, key, kPrompt);
  served.all(0, 100);
  expect_same(whole.traces, served.traces, key, "packed");

  auto fp4 = executed({4});
  fp4.model.indexer_cache_dtype = "fp4";
  Served fp4_whole(fp4), fp4_chunks(fp4);
  fp4_whole.open(0, key, kPrompt);
  fp4_whole.all(0, kPrompt);
  fp4_chunks.open(0, key, kPrompt);
  fp4_chunks.all(0, 61);
  expect_same(fp4_whole.traces, fp4_chunks.traces, key, "fp4");
  Served fp4_decode(fp4);
  fp4_decode.open(0, key, kPrompt);
  fp4_decode.all(0, 1);
  expect_same(fp4_whole.traces, fp4_decode.traces, key, "fp4 decode");
}

// Rows are shared out to threads where ops are large; here always.
TEST(InvarianceOfThreads, AnyNumber) {
  const std::uint64_t key = fresh_seed();
  for (auto config : {executed({0, 4, 128}), executed({4})}) {
    if (config.model.num_hidden_layers == 1) config.model.indexer_cache_dtype = "fp4";
    config.model.hidden_size = 512;  // several blocks of outputs
    Served alone(config), shared(config);
    ops::host::force_threads(1);
    alone.open(0, key, kPrompt);
    alone.all(0, 150);
    for (const int threads : {2, 3}) {
      ops::host::force_threads(threads);
      shared.traces.written.clear();
      shared.open(0, key, kPrompt);
      shared.all(0, 150);
      expect_same(alone.traces, shared.traces, key, std::to_string(threads) + " threads");
      shared.rank.model().release_request(0);
    }
    ops::host::force_threads(0);
  }
}

// That the comparison can fail: one other token is another row, and everything after it too.
TEST(InvarianceCanFail, AnotherTokenIsSeen) {
  Served one(executed({0, 4})), other(executed({0, 4}));
  one.open(0, 1, 40);
  one.all(0, 40);
  other.open(0, 2, 40);
  other.all(0, 40);
  std::size_t equal = 0, different = 0;
  for (const auto& [where, bytes] : one.traces.written) {
    auto it = other.traces.written.find({std::get<0>(where), 2, std::get<2>(where)});
    ASSERT_NE(it, other.traces.written.end());
    (it->second == bytes ? equal : different) += 1;
  }
  EXPECT_GT(different, 10 * equal);
}

}  // namespace
}  // namespace warmgate::engine
