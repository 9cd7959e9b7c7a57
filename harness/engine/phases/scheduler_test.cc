#include <gtest/gtest.h>

#include <map>
#include <random>

#include "harness/engine/phases/scheduler_testing.h"

namespace warmgate::engine {
namespace {

using test::FakeBlocks;
using test::one_group;

struct Served {
  std::vector<Batch> batches;
  std::vector<ServedRequest> finished;
};

Served run_all(Scheduler& scheduler, int most = 100'000) {
  Served run;
  while (!scheduler.done()) {
    if (--most < 0) throw std::runtime_error("does not end");
    run.batches.push_back(scheduler.next());
    scheduler.complete([](const ServedRequest& r) { return r.id * 1000 + r.prompt + r.produced; },
                       [&](const ServedRequest& r) { run.finished.push_back(r); });
  }
  return run;
}

TEST(Scheduler, PromptThenDecodes) {
  FakeBlocks blocks(100);
  Scheduler scheduler({8, 4, 64}, one_group(1, 5, 3), blocks);
  const Served run = run_all(scheduler);
  ASSERT_EQ(run.batches.size(), 3u);
  EXPECT_EQ(run.batches[0].requests[0].query, 5);
  EXPECT_EQ(run.batches[1].requests[0].computed, 5);
  EXPECT_EQ(run.batches[1].requests[0].query, 1);
  EXPECT_EQ(run.batches[2].requests[0].computed, 6);
  EXPECT_EQ(run.finished.at(0).produced, 3);
  EXPECT_TRUE(blocks.all_back());
}

TEST(Scheduler, PromptsAroundTheTokenBudget) {
  // B = 8: prompts of B-1, B, B+1, 2B, 2B+1 tokens take 1, 1, 2, 2, 3 chunks.
  const std::map<std::int64_t, std::size_t> chunks = {{1, 1}, {7, 1},  {8, 1},
                                                      {9, 2}, {16, 2}, {17, 3}};
  for (const auto& [prompt, count] : chunks) {
    FakeBlocks blocks(100);
    Scheduler scheduler({8, 4, 64}, one_group(1, prompt, 1), blocks);
    const Served run = run_all(scheduler);
    EXPECT_EQ(run.batches.size(), count) << prompt;
    std::int64_t sum = 0;
    for (const Batch& batch : run.batches) {
      EXPECT_LE(batch.tokens(), 8);
      EXPECT_EQ(batch.requests.at(0).computed, sum);
      sum += batch.tokens();
    }
    EXPECT_EQ(sum, prompt);
  }
}

TEST(Scheduler, DecodesComeFirstAndPromptsTakeTheRest) {
  FakeBlocks blocks(100);
  scenario::Workload workload = one_group(2, 2, 10);
  workload.groups.push_back({1, 20, 1, 1, "long"});
  Scheduler scheduler({6, 4, 64}, workload, blocks);
  (void)scheduler.next();
  scheduler.complete([](const auto&) { return 0; }, [](const auto&) {});
  const Batch batch = scheduler.next();
  ASSERT_EQ(batch.requests.size(), 3u);
  EXPECT_EQ(batch.requests[0].query, 1);
  EXPECT_EQ(batch.requests[1].query, 1);
  EXPECT_EQ(batch.requests[2].query, 4);
}

TEST(Scheduler, OrderFollowsBothThresholds) {
  // Query lengths 1, 3 and 20 at thresholds 2 and 5: decode for both, for the attention, for none.
  FakeBlocks blocks(100);
  scenario::Workload workload;
  workload.groups = {{1, 1, 9, 0, "a"}, {1, 20, 1, 1, "b"}, {1, 3, 1, 1, "c"}, {1, 1, 1, 1, "d"}};
  Scheduler scheduler({64, 8, 64, 5, 2}, workload, blocks);
  (void)scheduler.next();
  scheduler.complete([](const auto&) { return 0; }, [](const auto&) {});
  std::vector<std::int64_t> queries;
  for (const BatchRequest& r : scheduler.next().requests) queries.push_back(r.query);
  EXPECT_EQ(queries, (std::vector<std::int64_t>{1, 1, 3, 20}));
}

TEST(Scheduler, NeverMoreRequestsThanAllowed) {
  FakeBlocks blocks(1000);
  Scheduler scheduler({64, 3, 64}, one_group(10, 4, 4), blocks);
  const Served run = run_all(scheduler);
  EXPECT_EQ(run.finished.size(), 10u);
  for (const Batch& batch : run.batches) {
    EXPECT_LE(batch.requests.size(), 3u);
    for (const BatchRequest& r : batch.requests) EXPECT_LT(r.request, 3);
  }
}

TEST(Scheduler, OneTokenAStepStillServesEverybody) {
  FakeBlocks blocks(100);
  Scheduler scheduler({1, 4, 64}, one_group(3, 2, 2), blocks);
  const Served run = run_all(scheduler);
  EXPECT_EQ(run.finished.size(), 3u);
  EXPECT_EQ(run.batches.size(), 3u * 3u);
}

TEST(Scheduler, IdleTimeTakesNoSteps) {
  FakeBlocks blocks(100);
  Scheduler scheduler({8, 4, 64}, one_group(1, 4, 1, 1'000'000'000), blocks);
  EXPECT_EQ(run_all(scheduler).batches.size(), 1u);
}

TEST(Scheduler, ArrivalsWaitForTheirStep) {
  FakeBlocks blocks(100);
  scenario::Workload workload = one_group(1, 1, 10);
  workload.groups.push_back({1, 1, 1, 4, "late"});
  Scheduler scheduler({8, 4, 64}, workload, blocks);
  const Served run = run_all(scheduler);
  for (std::size_t i = 0; i < run.batches.size(); ++i)
    EXPECT_EQ(run.batches[i].requests.size(), i == 4 ? 2u : 1u) << i;
}

TEST(Scheduler, LengthsAtTheContextsEnd) {
  FakeBlocks blocks(100);
  scenario::Workload workload;
  workload.groups = {{1, 15, 100, 0, "cut"}, {1, 16, 1, 0, "full"}, {1, 16, 0, 0, "no output"},
                     {1, 17, 0, 0, "long"},  {1, 0, 5, 0, "empty"}, {1, -3, 5, 0, "negative"}};
  Scheduler scheduler({64, 8, 16}, workload, blocks);
  EXPECT_EQ(scheduler.refused().size(), 4u);
  const Served run = run_all(scheduler);
  ASSERT_EQ(run.finished.size(), 2u);
  std::map<std::string, std::int64_t> produced;
  for (const ServedRequest& r : run.finished) produced[r.request_class] = r.produced;
  EXPECT_EQ(produced, (std::map<std::string, std::int64_t>{{"cut", 1}, {"no output", 0}}));
}

TEST(Scheduler, NoWorkIsDoneAtOnce) {
  FakeBlocks blocks(1);
  Scheduler scheduler({8, 4, 64}, {}, blocks);
  EXPECT_TRUE(scheduler.done());
  EXPECT_TRUE(scheduler.next().requests.empty());
}

TEST(Scheduler, AShortPoolPreemptsTheNewestAndEndsAllTheSame) {
  FakeBlocks blocks(5, 4);  // 20 tokens; two requests of 16 in the end
  Scheduler scheduler({64, 8, 64}, one_group(2, 8, 8), blocks);
  const Served run = run_all(scheduler);
  ASSERT_EQ(run.finished.size(), 2u);
  EXPECT_GT(scheduler.preemptions(), 0);
  EXPECT_EQ(run.finished[0].id, 0);  // the older one got on
  EXPECT_TRUE(blocks.all_back());
  // What is sampled does not depend on having been preempted.
  FakeBlocks enough(100, 4);
  Scheduler calm({64, 8, 64}, one_group(2, 8, 8), enough);
  const Served undisturbed = run_all(calm);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(run.finished[i].digest, undisturbed.finished[i].digest);
}

TEST(Scheduler, NobodyOvertakesARequestThatWaitsForBlocks) {
  FakeBlocks blocks(4, 4);
  scenario::Workload workload;
  workload.groups = {{1, 8, 6, 0, "first"}, {1, 16, 1, 0, "long"}, {3, 1, 1, 0, "short"}};
  Scheduler scheduler({64, 8, 64}, workload, blocks);
  const Served run = run_all(scheduler);
  ASSERT_EQ(run.finished.size(), 5u);
  EXPECT_EQ(run.finished[0].request_class, "first");
  EXPECT_EQ(run.finished[1].request_class, "long");
}

TEST(Scheduler, ALoneRequestIsChunkedSmallerWhereTheWindowAllows) {
  FakeBlocks blocks(3, 4, 4);
  Scheduler scheduler({32, 8, 64}, one_group(1, 32, 1), blocks);
  EXPECT_EQ(run_all(scheduler).finished.size(), 1u);
}

TEST(Scheduler, ARequestThatCanNeverFitIsAnError) {
  FakeBlocks blocks(3, 4);
  Scheduler scheduler({64, 8, 64}, one_group(1, 13, 1), blocks);
  try {
    run_all(scheduler, 1000);
    FAIL() << "ended";
  } catch (const NoProgress& error) {
    EXPECT_NE(std::string(error.what()).find("request 0 cannot go on: 12 of 13 tokens stored"),
              std::string::npos)
        << error.what();
  }
  FakeBlocks none(0);
  Scheduler hopeless({64, 8, 64}, one_group(1, 1, 1), none);
  EXPECT_THROW(hopeless.next(), NoProgress);
}

TEST(Scheduler, RandomWorkloadsEndWithinTheirLimits) {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::int64_t length = pick(1, 96), block = pick(1, 9), window = pick(0, 1) * pick(1, 20);
    SchedulerLimits limits{pick(1, 40), pick(1, 6), length, pick(3, 5), pick(1, 3)};
    FakeBlocks blocks((length + block - 1) / block + pick(0, 12), block, window);
    scenario::Workload workload;
    std::int64_t requests = 0;
    for (std::int64_t g = pick(0, 4); g > 0; --g) {
      workload.groups.push_back({pick(0, 5), pick(0, length), pick(0, 20), pick(0, 30), "x"});
      requests += workload.groups.back().count;
    }
    Scheduler scheduler(limits, workload, blocks);
    const Served run = run_all(scheduler);
    EXPECT_EQ(run.finished.size() + scheduler.refused().size(), static_cast<std::size_t>(requests));
    EXPECT_TRUE(blocks.all_back());
    for (const Batch& batch : run.batches) {
      EXPECT_LE(batch.tokens(), limits.tokens);
      EXPECT_LE(batch.requests.size(), static_cast<std::size_t>(limits.requests));
      int tier = 0;
      for (const BatchRequest& r : batch.requests) {
        EXPECT_GE(r.query, 1);
        EXPECT_LE(r.computed + r.query, length);
        const int now = r.query <= limits.indexer_threshold  ? 0
                        : r.query <= limits.decode_threshold ? 1
                                                             : 2;
        EXPECT_GE(now, tier);
        tier = now;
      }
    }
  }
}

}  // namespace
}  // namespace warmgate::engine
