// The ids that batches carry where contents count.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/engine/phases/scheduler_testing.h"

namespace warmgate::engine {
namespace {

using test::FakeBlocks;
using test::one_group;

/// Serves everything with ids that say whose they are and where they stand.
std::vector<ServedRequest> serve_ids(Scheduler& scheduler) {
  const auto id_of = [](const ServedRequest& r) { return r.id * 1000 + r.prompt + r.produced; };
  std::vector<ServedRequest> finished;
  while (!scheduler.done()) {
    const Batch batch = scheduler.next();
    for (const BatchRequest& r : batch.requests) {
      EXPECT_EQ(static_cast<std::int64_t>(r.ids.size()), r.query);
      const std::int64_t request = r.ids[0] / 1000;
      for (std::size_t i = 0; i < r.ids.size(); ++i)
        EXPECT_EQ(r.ids[i], request * 1000 + r.computed + static_cast<std::int64_t>(i));
    }
    scheduler.complete(
        [&](const ServedRequest& r) {
          const BatchRequest& part = batch.requests.at(r.place);
          EXPECT_EQ(part.request, r.row);
          EXPECT_EQ(part.computed + part.query, r.prompt + r.produced);
          return id_of(r);
        },
        [&](const ServedRequest& r) { finished.push_back(r); });
  }
  return finished;
}

TEST(SchedulerIds, BatchesCarryTheIdsOfTheirTokensAlsoWhenComputedAnew) {
  const auto prompt_ids = [](std::int64_t request, std::int64_t p) { return request * 1000 + p; };
  scenario::Workload workload = one_group(2, 8, 8);
  workload.groups.push_back({2, 20, 5, 3, "late"});
  std::vector<std::uint64_t> calm_digests;
  for (const std::int64_t blocks_there : {100, 6}) {
    FakeBlocks blocks(blocks_there, 4);
    Scheduler scheduler({30, 4, 64}, workload, blocks, prompt_ids);
    auto finished = serve_ids(scheduler);
    EXPECT_EQ(scheduler.preemptions() > 0, blocks_there < 100);
    ASSERT_EQ(finished.size(), 4u);
    std::sort(finished.begin(), finished.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const ServedRequest& r : finished) {
      ASSERT_EQ(static_cast<std::int64_t>(r.ids.size()), r.prompt + r.produced);
      for (std::size_t p = 0; p < r.ids.size(); ++p)
        EXPECT_EQ(r.ids[p], r.id * 1000 + static_cast<std::int64_t>(p));
      if (blocks_there == 100) {
        calm_digests.push_back(r.digest);
      } else {
        EXPECT_EQ(r.digest, calm_digests.at(static_cast<std::size_t>(r.id)));
      }
    }
  }
}

TEST(SchedulerIds, WithoutPromptIdsNoneAreKept) {
  FakeBlocks blocks(100);
  Scheduler scheduler({8, 4, 64}, one_group(1, 5, 3), blocks);
  while (!scheduler.done()) {
    for (const BatchRequest& r : scheduler.next().requests) EXPECT_TRUE(r.ids.empty());
    scheduler.complete([](const auto&) { return 7; },
                       [](const ServedRequest& r) { EXPECT_TRUE(r.ids.empty()); });
  }
}

}  // namespace
}  // namespace warmgate::engine
