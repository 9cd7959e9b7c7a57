#include "harness/engine/checks/sample.h"

#include <gmock/gmock.h>

#include "harness/engine/testing.h"

namespace warmgate::engine::checks {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Dims& dims() {
  static const Dims out = make_dims(engine::testing::small({1}));
  return out;
}

StepHost step_of(std::vector<BatchRequest> requests, bool dummy = false) {
  StepHost host;
  host.build({std::move(requests), dummy}, dims());
  return host;
}

TEST(Sampler, FirstLastAndTheRarestBoundary) {
  Sampler sampler(Extent::kSampled);
  // Positions 100..219: 127 ends a window of 128, 128 begins a page.
  EXPECT_THAT(sampler.rows(step_of({{0, 100, 120, {}}}), "serve", dims()), ElementsAre(0, 27, 119));
  EXPECT_THAT(sampler.rows(step_of({{0, 100, 120, {}}}), "serve", dims()), ElementsAre(0, 92, 119));
  EXPECT_THAT(sampler.rows(step_of({{0, 100, 120, {}}}), "serve", dims()), IsEmpty());
}

TEST(Sampler, EveryKindOfStepIsSeen) {
  Sampler sampler(Extent::kSampled);
  // Decodes one by one: every position that ends 4 or 128 or begins a page is of its own kind.
  std::vector<std::int64_t> compared;
  for (std::int64_t p = 0; p < 300; ++p) {
    if (!sampler.rows(step_of({{0, p, 1, {}}}), "serve", dims()).empty()) compared.push_back(p);
  }
  for (const std::int64_t p : {0, 1, 3, 64, 127, 128, 255, 256}) {
    EXPECT_THAT(compared, Contains(p)) << p;
  }
  EXPECT_THAT(compared, SizeIs(::testing::Le(12u)));
  EXPECT_FALSE(sampler.rows(step_of({{0, 2052, 1, {}}}), "serve", dims()).empty());  // top-k scores
  // Another batch, a dummy and another phase are new.
  EXPECT_FALSE(sampler.rows(step_of({{0, 5, 1, {}}, {1, 5, 1, {}}}), "serve", dims()).empty());
  EXPECT_FALSE(sampler.rows(step_of({{0, 5, 1, {}}}, true), "serve", dims()).empty());
  EXPECT_FALSE(sampler.rows(step_of({{0, 5, 1, {}}}), "warmup", dims()).empty());
}

TEST(Sampler, AllIsAll) {
  Sampler sampler(Extent::kAll);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(sampler.rows(step_of({{0, 0, 7, {}}}), "serve", dims()), SizeIs(7));
  }
  EXPECT_THAT(sampler.rows(step_of({}), "serve", dims()), IsEmpty());
}

TEST(Spread, AllOrSomeWithBothEnds) {
  EXPECT_THAT(spread(0, 4, 1), IsEmpty());
  EXPECT_THAT(spread(3, 4, 1), ElementsAre(0, 1, 2));
  std::set<std::int64_t> seen;
  for (std::uint64_t salt = 0; salt < 200; ++salt) {
    const auto some = spread(100, 8, salt);
    EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
    EXPECT_EQ(std::set<std::int64_t>(some.begin(), some.end()).size(), some.size());
    EXPECT_LE(some.size(), 8u);
    EXPECT_EQ(some.front(), 0);
    EXPECT_EQ(some.back(), 99);
    seen.insert(some.begin(), some.end());
  }
  EXPECT_EQ(seen.size(), 100u);  // no column is never looked at
}

}  // namespace
}  // namespace warmgate::engine::checks
