// Warmup that covers, and ranks that stay together.
#include "harness/engine/model.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "harness/engine/testing_steps.h"

namespace warmgate::engine {
namespace {

using testing::keys;
using testing::launches;
using testing::Launches;
using testing::serve;

TEST(Model, CoveringStepsReachWhatServingReaches) {
  std::mt19937 random(20260811);
  const auto pick = [&](std::vector<std::int64_t> v) { return v[random() % v.size()]; };
  for (int round = 0; round < 24; ++round) {
    const std::int64_t count = 1 + static_cast<std::int64_t>(random() % 4);
    std::vector<std::int64_t> ratios;
    for (std::int64_t i = 0; i < count; ++i) ratios.push_back(pick({0, 1, 4, 128}));
    auto config = testing::small(ratios, pick({64, 200, 4096, 40000}), pick({16, 64, 512, 2048}),
                                 pick({1, 3, 64}));
    if (random() % 2) testing::add_drafter(config, random() % 2 ? "dspark" : "mtp", pick({1, 5}));
    config.architectures = {random() % 2 ? "sm_90a" : "sm_100a"};
    testing::Rank rank(config);
    rank.start();
    rank.phase("warmup", [&] {
      for (const Batch& b : rank.model().covering_batches()) rank.model().step(b, true);
    });
    rank.workspace.lock();
    rank.phase("serve", [&] {
      const auto& limits = config.limits;
      for (int step = 0; step < 16; ++step) {
        Batch batch;
        std::int64_t budget = limits.max_num_batched_tokens;
        const std::int64_t requests = 1 + static_cast<std::int64_t>(random() % 40);
        for (std::int64_t r = 0; r < std::min(requests, limits.max_num_seqs) && budget > 0; ++r) {
          const std::int64_t query =
              std::min({pick({1, 2, 6, 11, 12, 127, 500}), budget, limits.max_model_len});
          const std::int64_t room = limits.max_model_len - query;
          batch.requests.push_back({r, pick({0, room / 2, room}), query});
          budget -= query;
        }
        std::stable_sort(batch.requests.begin(), batch.requests.end(),
                         [](const auto& a, const auto& b) { return a.query < b.query; });
        batch.dummy = true;  // rows without blocks: what is tested is which code runs
        rank.model().step(batch, false);
      }
    });
    const auto events = rank.events("launch");
    for (const std::string_view kernel :
         {jit::kComputePrefillMetadata, jit::kBuildPrefillChunkMetadata,
          jit::kCombineTopkSwaIndices}) {
      std::set<std::string> reachable;
      for (const auto& key : rank.kernels.reachable_keys(kernel)) reachable.insert(key.text());
      for (const std::string& key : keys(events, std::string(kernel))) {
        EXPECT_TRUE(reachable.count(key)) << "round " << round << ": " << key;
      }
    }
    const Launches warmed = launches(events, "warmup");
    for (const auto& served : launches(events, "serve")) {
      EXPECT_TRUE(warmed.count(served))
          << "round " << round << ": " << served.first << " " << served.second;
    }
  }
}

// One of two ranks, alone: counts what it would have entered.
class Counting : public Collectives {
 public:
  int rank() const override { return 0; }
  int world() const override { return 2; }
  std::int64_t all_reduce(std::string_view, std::int64_t bytes) override { return add(bytes); }
  std::int64_t all_gather(std::string_view, std::int64_t bytes) override { return add(bytes); }
  std::int64_t all_reduce(std::string_view, std::span<std::byte> payload, Element) override {
    return add(static_cast<std::int64_t>(payload.size()));
  }
  std::int64_t all_gather(std::string_view, std::span<const std::byte> mine,
                          std::span<std::byte>) override {
    return add(static_cast<std::int64_t>(mine.size()));
  }
  std::int64_t barrier(std::string_view) override { return add(0); }
  std::int64_t all_min(std::string_view, std::int64_t value) override { return value; }
  void abandon(std::string_view) override {}
  std::vector<std::int64_t> entered;

 private:
  std::int64_t add(std::int64_t bytes) {
    entered.push_back(bytes);
    return static_cast<std::int64_t>(entered.size()) - 1;
  }
};

TEST(Model, CollectivesOfAStep) {
  auto config = testing::small({0, 4});
  testing::Rank alone(config);
  alone.start();
  EXPECT_TRUE(alone.events("collective").empty());  // one rank has nothing to sum
  config.parallel.tp = 2;
  auto counting = std::make_unique<Counting>();
  const Counting& seen = *counting;
  testing::Rank rank(config, 1, std::move(counting));
  rank.start();
  const std::size_t before = seen.entered.size();
  rank.phase("serve", [&] { serve(rank, 0, 3); });
  // Embedding, then attention and experts of two layers, then the logits' shards.
  const std::int64_t hidden = 3 * 4096 * 2;
  EXPECT_EQ(std::vector<std::int64_t>(seen.entered.begin() + static_cast<std::ptrdiff_t>(before),
                                      seen.entered.end()),
            (std::vector<std::int64_t>{hidden, hidden, hidden, hidden, hidden, 129280 / 2 * 4}));
  EXPECT_EQ(rank.events("collective").back()["kind"], "all_gather");
}

}  // namespace
}  // namespace warmgate::engine
