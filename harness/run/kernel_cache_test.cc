// The cache of compiled kernels through whole runs: cold, warm, damaged, and of a run's own.
#include <gmock/gmock.h>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kKernelCacheScenario =
    "scenario: kernel-cache\n"
    "about: Keys are compiled once.\n"
    "target: {native: {device: meta}}\n"
    "model: {preset: small-flash}\n"
    "limits: {max_model_len: 8192, max_num_batched_tokens: 1024, max_num_seqs: 16, "
    "device_memory_bytes: 80 GiB}\n"
    "workload: {requests: 1, prompt_tokens: 64, output_tokens: 2}\n";

class KernelCache : public Product {
 protected:
  KernelCache() {
    options_.cache_dir = dir_.path() / "cache";
    options_.jobs = 1;
  }
  void SetUp() override {
    if (!jit::nvrtc().available) GTEST_SKIP() << jit::nvrtc().why_not;
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (const auto& file : fs::directory_iterator(dir_.path() / "cache"))
      if (file.path().filename() != "lock") out.push_back(file.path());
    return out;
  }
  std::string why(const verdict::RunRecord& run) {
    return verdict::find_result(run, "cache-sound")->why;
  }
};

TEST_F(KernelCache, TheSecondStartCompilesNothing) {
  options_.repeat = 2;
  const GateResult result = run({put("s.yaml", kKernelCacheScenario)});
  const auto& runs = result.scenarios.at(0).variants.at(0).runs;
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(state_of(runs[0], "cache-sound"), "kept") << story(runs[0]);
  EXPECT_EQ(state_of(runs[1], "cache-sound"), "kept") << story(runs[1]);
  EXPECT_THAT(why(runs[0]), HasSubstr(" 0 found in the cache"));
  EXPECT_THAT(why(runs[1]), HasSubstr("0 keys compiled"));
  EXPECT_THAT(why(runs[1]), HasSubstr("start 2"));
}

TEST_F(KernelCache, AnAddressThatNoStartFindsAgainIsFoundByTheSecond) {
  options_.repeat = 2;
  options_.load.overlays = {"seams.jit.cache=per_start"};
  const GateResult result = run({put("s.yaml", kKernelCacheScenario)});
  const auto& runs = result.scenarios.at(0).variants.at(0).runs;
  EXPECT_EQ(state_of(runs.at(0), "cache-sound"), "kept") << story(runs[0]);
  EXPECT_THAT(broken(runs.at(1)), ElementsAre("cache-sound")) << story(runs[1]);
}

TEST_F(KernelCache, DamagedEntriesAreMended) {
  const fs::path file = put("s.yaml", kKernelCacheScenario);
  ASSERT_EQ(state_of(run_one(file), "cache-sound"), "kept");
  const auto before = entries();
  ASSERT_GT(before.size(), 3u);
  for (std::size_t i = 0; i < before.size(); ++i)
    fs::resize_file(before[i], i % 2 == 0 ? 0 : fs::file_size(before[i]) / 2);
  const auto damaged = run_one(file);
  EXPECT_EQ(state_of(damaged, "cache-sound"), "kept") << story(damaged);
  EXPECT_THAT(why(damaged), HasSubstr(" 0 found in the cache"));
  EXPECT_THAT(why(damaged), ::testing::Not(HasSubstr(" 0 damaged"))) << why(damaged);
  EXPECT_THAT(why(run_one(file)), HasSubstr("0 keys compiled"));
}

TEST_F(KernelCache, AColdStartHasACacheOfItsOwn) {
  std::string text = kKernelCacheScenario;
  text.replace(text.find("device: meta"), 12, "device: meta, cache: cold");
  options_.repeat = 2;
  const GateResult result = run({put("s.yaml", text)});
  for (const auto& run : result.scenarios.at(0).variants.at(0).runs) {
    EXPECT_EQ(state_of(run, "cache-sound"), "kept") << story(run);
    EXPECT_THAT(why(run), HasSubstr(" 0 found in the cache"));
    EXPECT_EQ(state_of(run, "nothing-left-behind"), "kept") << story(run);
  }
}

}  // namespace
}  // namespace warmgate::run::testing
