#include "harness/engine/jit/probe.h"

#include <gmock/gmock.h>

#include <set>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

TEST(Probe, EachWarmedKeyOnce) {
  testing::Rank rank(testing::flash());
  rank.phase("warmup", [&] { probe_keys(rank.kernels, rank.recorder); });
  std::set<std::string> seen;
  for (const auto& e : rank.events("check")) {
    EXPECT_EQ(e["kind"], "probe");
    EXPECT_TRUE(e["ok"]) << e.dump();
    EXPECT_FALSE(e.contains("fault"));
    EXPECT_TRUE(seen.insert(e["tensor"]).second) << e.dump();
  }
  std::set<std::string> asked;
  for (const auto kernel : {jit::kComputePrefillMetadata, jit::kBuildPrefillChunkMetadata,
                            jit::kCombineTopkSwaIndices}) {
    for (const jit::Key& key : rank.kernels.warmup_keys(kernel)) asked.insert(key.text());
  }
  EXPECT_EQ(seen, asked);
}

TEST(Probe, ABrokenKeyIsFoundWhateverTheCompilerSaid) {
  scenario::Resolved config = testing::small({0, 0, 4, 128, 0});
  config.seams["warmup.chunk_ratios"] = "config_raw";
  config.seams["jit.compiler"] = "lenient";
  testing::Rank rank(config);
  rank.phase("warmup", [&] { probe_keys(rank.kernels, rank.recorder); });
  int broken = 0;
  for (const auto& e : rank.events("check")) {
    if (e["ok"]) continue;
    ++broken;
    EXPECT_EQ(e["fault"], "division_by_zero");
    EXPECT_GT(e["line"], 0);
  }
  EXPECT_GT(broken, 0);
}

}  // namespace
}  // namespace warmgate::engine
