#include "harness/engine/jit/kernel_set.h"

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

using scenario::Resolved;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Ratios 0, 0, 4, 128, 0 with the warmup of vllm-project/vllm#47451.
Resolved zero_ratio(const char* on_error, const char* compiler = "strict",
                    const char* ratios = "config_raw") {
  Resolved r = testing::small({0, 0, 4, 128, 0});
  r.seams["warmup.chunk_ratios"] = ratios;
  r.seams["warmup.chunk_starts"] = "zero_and_one";
  r.seams["warmup.combine_rows"] = "fixed";
  r.seams["warmup.combine_alignments"] = "fixed";
  r.seams["warmup.on_error"] = on_error;
  r.seams["jit.compiler"] = compiler;
  return r;
}

std::vector<std::string> stages(const testing::Rank& rank) {
  std::vector<std::string> out;
  for (const auto& e : rank.events("stage")) {
    const std::string stage = e["stage"];
    out.push_back(stage.substr(stage.find('/') + 1) + " " + e["status"].get<std::string>());
  }
  return out;
}
std::size_t compiles(const testing::Rank& rank, const std::string& status,
                     const std::string& phase) {
  std::size_t n = 0;
  for (const auto& e : rank.events("compile"))
    n += e["status"] == status && e["phase"] == phase ? 1 : 0;
  return n;
}

TEST(KernelSet, WarmsTheThreeKernelsInOrder) {
  testing::Rank rank(testing::flash());
  rank.phase("warmup", [&] { rank.kernels.warmup(); });
  EXPECT_THAT(stages(rank),
              ElementsAre("ComputePrefillMetadata requested", "BuildPrefillChunkMetadata requested",
                          "CombineTopkSwaIndices requested", "ComputePrefillMetadata done",
                          "BuildPrefillChunkMetadata done", "CombineTopkSwaIndices done"));
  EXPECT_TRUE(rank.events("skip").empty());
  std::vector<std::string> keys;
  for (const auto kernel : {jit::kComputePrefillMetadata, jit::kBuildPrefillChunkMetadata,
                            jit::kCombineTopkSwaIndices}) {
    for (const jit::Key& key : rank.kernels.warmup_keys(kernel)) keys.push_back(key.text());
  }
  const auto events = rank.events("compile");
  ASSERT_EQ(events.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(events[i]["key"], keys[i]);
    EXPECT_EQ(events[i]["arch"], "sm_90a");
    EXPECT_EQ(events[i]["status"], "ok");
    EXPECT_EQ(events[i]["source"], "compiler");
    EXPECT_EQ(events[i]["backend"], "host");
    EXPECT_EQ(events[i]["phase"], "warmup");
    EXPECT_GE(events[i]["ms"].get<double>(), 0);
  }
  const auto domains = rank.events("domain");
  ASSERT_EQ(domains.size(), 3u);
  EXPECT_EQ(domains[0]["kernel"], "ComputePrefillMetadata");
  EXPECT_EQ(domains[0]["keys"].size(), 11u);
  EXPECT_THROW(rank.kernels.warmup_keys("Nope"), std::invalid_argument);
  EXPECT_THROW(rank.kernels.reachable_keys("Nope"), std::invalid_argument);
}

TEST(KernelSet, ASwallowedErrorSkipsTheRestAndEveryLaterKernel) {
  testing::Rank rank(zero_ratio("swallow"));
  rank.phase("warmup", [&] { rank.kernels.warmup(); });
  EXPECT_THAT(stages(rank),
              ElementsAre("ComputePrefillMetadata requested", "BuildPrefillChunkMetadata requested",
                          "CombineTopkSwaIndices requested", "ComputePrefillMetadata done",
                          "BuildPrefillChunkMetadata failed"));
  EXPECT_EQ(compiles(rank, "failed", "warmup"),
            1u);  // the first of twelve; the others were not tried
  EXPECT_EQ(compiles(rank, "ok", "warmup"),
            rank.kernels.warmup_keys(jit::kComputePrefillMetadata).size());
  const auto skips = rank.events("skip");
  ASSERT_EQ(skips.size(), 2u);
  EXPECT_EQ(skips[0]["step"], "metadata_kernels/BuildPrefillChunkMetadata");
  EXPECT_EQ(skips[1]["step"], "metadata_kernels/CombineTopkSwaIndices");
  for (const auto& skip : skips) {
    EXPECT_EQ(skip["declared"], false);
    const std::string reason = skip["reason"];
    EXPECT_THAT(reason, HasSubstr("Skipping sparse MLA Triton warmup."));
    EXPECT_THAT(reason, HasSubstr("COMPRESS_RATIO=0"));
    EXPECT_THAT(reason, HasSubstr("division_by_zero"));
  }
}

TEST(KernelSet, ARaisedErrorEndsStartUp) {
  testing::Rank rank(zero_ratio("raise"));
  EXPECT_THROW(rank.phase("warmup", [&] { rank.kernels.warmup(); }), std::runtime_error);
  EXPECT_EQ(stages(rank).back(), "BuildPrefillChunkMetadata failed");
  EXPECT_TRUE(rank.events("skip").empty());
}

TEST(KernelSet, ALenientCompilerAndTheClampBothLetWarmupEnd) {
  for (const Resolved& r :
       {zero_ratio("swallow", "lenient"), zero_ratio("swallow", "strict", "config_clamped")}) {
    testing::Rank rank(r);
    rank.phase("warmup", [&] { rank.kernels.warmup(); });
    EXPECT_EQ(stages(rank).back(), "CombineTopkSwaIndices done");
    EXPECT_EQ(compiles(rank, "failed", "warmup"), 0u);
    EXPECT_EQ(compiles(rank, "ok", "warmup"), 5u + 36u + 12u);  // 16 requests: block sizes 1 to 16
  }
}

TEST(KernelSet, AKeyThatWarmupSkippedIsCompiledAtLaunchOnce) {
  testing::Rank rank(zero_ratio("swallow"));
  rank.phase("warmup", [&] { rank.kernels.warmup(); });
  rank.phase("serve", [&] {
    const LayerRef layer{2, "c4a", "target"};
    CombineInputs in;
    in.compress_ratio = 4;
    in.topk = in.index_width = 512;
    for (int i = 0; i < 5; ++i) rank.kernels.launch_combine(in, layer, 10);
    rank.kernels.launch_compute_prefill({3}, layer, 3);
    rank.kernels.launch_build_chunk({0, 33, 4, true}, layer, 33);
  });
  const auto events = rank.events("compile");
  std::vector<std::string> late;
  for (const auto& e : events) {
    if (e["phase"] == "serve") late.push_back(e["kernel"]);
  }
  EXPECT_THAT(late, ElementsAre("CombineTopkSwaIndices", "BuildPrefillChunkMetadata"));
  std::int64_t count = 0;
  for (const auto& e : rank.events("launch")) {
    if (e["kernel"] == "CombineTopkSwaIndices")
      count = std::max(count, e.value("count", std::int64_t{1}));
  }
  EXPECT_EQ(count, 5);
}

TEST(KernelSet, ALaunchThatDoesNotCompileFails) {
  testing::Rank rank(zero_ratio("swallow"));
  EXPECT_THROW(
      rank.phase("serve",
                 [&] {
                   rank.kernels.launch_build_chunk({0, 33, 0, true}, {2, "c4a", "target"}, 33);
                 }),
      std::runtime_error);
  testing::Rank lenient(zero_ratio("swallow", "lenient"));
  EXPECT_NO_THROW(lenient.phase("serve", [&] {
    lenient.kernels.launch_build_chunk({0, 33, 0, true}, {2, "c4a", "target"}, 33);
  }));
}

TEST(KernelSet, SignaturesFollowTheKey) {
  testing::Rank rank(testing::flash());
  const LayerRef layer{2, "c4a", "target"};
  rank.phase("serve", [&] {
    rank.kernels.launch_build_chunk({0, 33, 4, true}, layer, 33);
    rank.kernels.launch_build_chunk({0, 33, 4, false}, layer, 33);
    rank.kernels.launch_build_chunk({0, 32, 4, false}, layer, 32);
  });
  std::set<std::string> signatures;
  for (const auto& e : rank.events("launch")) signatures.insert(e["signature"]);
  EXPECT_EQ(signatures.size(), 3u);
}

}  // namespace
}  // namespace warmgate::engine
