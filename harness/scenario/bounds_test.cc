// Products that overflow are refused where they are written, with the largest value that is not.
#include "harness/scenario/bounds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::HasSubstr;
using Bounds = TestFiles;

std::string scenario_with(const std::string& limits, const std::string& model = "small-flash") {
  return "scenario: s\nmodel: {preset: " + model + "}\nlimits: {" + limits + "}\n";
}

// The strides that vLLM prints (attention groups of Flash with the DSpark layers, and Pro).
TEST_F(Bounds, TheBlocksOfThePublishedModels) {
  const auto bytes = [&](const std::string& text) {
    return kv_block_bytes(load(text).variants.at(0).ranks.at(0));
  };
  EXPECT_EQ(bytes(scenario_with("device_memory_bytes: 288 GB", "deepseek-v4-flash-0731") +
                  "drafter: {method: dspark, num_speculative_tokens: 7}\n"),
            1002240);
  EXPECT_EQ(bytes(scenario_with("device_memory_bytes: 288 GB", "deepseek-v4-pro")), 1435968);
  EXPECT_EQ(bytes(scenario_with("device_memory_bytes: 288 GB",
                                "deepseek-v4-pro, indexer_cache_dtype: fp4")),
            1315008);
}

TEST_F(Bounds, APoolOfMoreBlocksThanIdsIsRefusedFromTheFirstOneOn) {
  const std::string base = scenario_with("device_memory_bytes: 9007199254740991");
  const Scenario small = load(scenario_with("device_memory_bytes: 1 GiB"));
  const std::int64_t block = kv_block_bytes(small.variants[0].ranks[0]);
  const std::int64_t most = kMostBlocks * block + block - 1;
  const auto pool = [&](std::int64_t bytes) {
    return problems(scenario_with(
        fmt::format("device_memory_bytes: 9007199254740991, kv_pool_bytes: {}", bytes)));
  };
  EXPECT_EQ(pool(most), "");
  EXPECT_EQ(
      pool(most + 1),
      fmt::format("s.yaml:3:64: limits.kv_pool_bytes: {} bytes are 2147483648 KV blocks of {} "
                  "bytes; block ids are 32 bits wide, so 2147483647 are the most: at most {} "
                  "bytes",
                  most + 1, block, most));
  EXPECT_THAT(pool(9007199254740991), HasSubstr(fmt::format("at most {} bytes", most)));
}

TEST_F(Bounds, MemoryIsRefusedByWhatThePoolCouldBecome) {
  const std::string text = problems(scenario_with("device_memory_bytes: 9007199254740991"));
  EXPECT_THAT(text, HasSubstr("s.yaml:3:31: limits.device_memory_bytes: 8106479329266892 bytes"));
  EXPECT_THAT(text, HasSubstr("of memory with gpu_memory_utilization 0.9"));
  const std::size_t at = text.find("at most ") + 8;
  const std::int64_t most = std::stoll(text.substr(at));
  EXPECT_EQ(problems(scenario_with(fmt::format("device_memory_bytes: {}", most))), "");
  EXPECT_NE(problems(scenario_with(fmt::format("device_memory_bytes: {}", most + 1000000))), "");
}

TEST_F(Bounds, RequestsOfAllGroupsTogether) {
  const auto groups = [&](const std::string& counts) {
    return problems(scenario_with("device_memory_bytes: 80 GiB") + "workload:\n  groups: [" +
                    counts + "]\n");
  };
  const std::string half = "{requests: 500000, prompt_tokens: 8, output_tokens: 1}";
  const std::string one = "{requests: 1, prompt_tokens: 8, output_tokens: 1}";
  EXPECT_EQ(groups(half + ", " + half), "");
  EXPECT_EQ(groups(half + ", " + half + ", " + one),
            "s.yaml:5:11: workload.groups: 1000001 requests in all; at most 1000000");
}

TEST_F(Bounds, RopeTables) {
  const auto rope = [&](const std::string& factor) {
    return problems(scenario_with("device_memory_bytes: 80 GiB",
                                  "small-flash, original_max_position_embeddings: 65536, "
                                  "rope_factor: " +
                                      factor));
  };
  EXPECT_EQ(rope("16384"), "");
  EXPECT_THAT(rope("16385"), HasSubstr("model.rope_factor: 16385 times"));
  EXPECT_THAT(rope("1e6"), HasSubstr("more than 1073741824 positions; at most 16384"));
}

// Every integer at its largest, each alone: refused with a place, or loaded; never a crash.
TEST_F(Bounds, TheLargestOfEachIntegerIsRefusedOrTaken) {
  for (const char* key : {"max_model_len", "max_num_batched_tokens", "max_num_seqs",
                          "device_memory_bytes", "kv_pool_bytes"}) {
    for (const char* value : {"9007199254740991", "1073741824", "2147483647", "2147483648"}) {
      const std::string text = problems(
          scenario_with(std::string(key) == "device_memory_bytes"
                            ? fmt::format("{}: {}", key, value)
                            : fmt::format("device_memory_bytes: 80 GiB, {}: {}", key, value)));
      if (!text.empty()) {
        EXPECT_THAT(text, HasSubstr("s.yaml:3:")) << key << " " << value;
      }
    }
  }
}

TEST_F(Bounds, ASetWithoutAValueSaysSo) {
  LoadOptions options;
  for (const char* set :
       {"limits.max_model_len=", "limits.max_model_len=  ", "limits.max_model_len=# a word"}) {
    options.overlays = {set};
    EXPECT_EQ(problems(kSmall, options), std::string("--set ") + set +
                                             ": limits.max_model_len: nothing after '='; give a "
                                             "value, or leave this --set out");
  }
  for (const char* set : {"limits.max_model_len=~", "limits.max_model_len=null"}) {
    options.overlays = {set};
    EXPECT_THAT(problems(kSmall, options), HasSubstr("limits.max_model_len")) << set;
  }
}

}  // namespace
}  // namespace warmgate::scenario
