// What start-up says about its own state, and proves about its dummy steps.
#include "harness/engine/phases/state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/phases/engine.h"
#include "harness/engine/phases/random_config.h"
#include "harness/engine/test_events.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;

scenario::Resolved tiny() {
  auto config = testing::executed({0, 4, 128});
  config.limits.max_model_len = 256;
  config.limits.max_num_batched_tokens = 32;
  config.limits.max_num_seqs = 2;
  config.workload.groups = {{1, 20, 2, 0, "short"}};
  return config;
}

void run(test::Events& events, const scenario::Resolved& config, bool ok = true) {
  jit::Compiler compiler({{}, jit::Backend::kHost});
  const auto collectives = make_local_collectives();
  EXPECT_EQ(run_engine(config, events.writer, *collectives, compiler), ok);
}

TEST(State, IsToldBeforeAndAfter) {
  test::Events events;
  run(events, test::small_config());
  const auto states = events.of("state");
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].at("phase"), "warmup");
  EXPECT_EQ(states[2].at("phase"), "shutdown");
  for (const json& state : states) {
    for (const json& field : state.at("keeps"))
      EXPECT_EQ(state.at(field.get<std::string>()), states[0].at(field.get<std::string>()))
          << field;
    EXPECT_EQ(state.at("held_blocks"), 0);
    EXPECT_FALSE(state.contains("null_block")) << "nothing has contents here";
  }
}

TEST(State, BlocksThatWarmupKeptShow) {
  test::Events events;
  auto config = test::small_config();
  config.seams["warmup.scratch_blocks"] = "kept";
  run(events, config);
  const auto states = events.of("state");
  EXPECT_GT(states.at(1).at("held_blocks"), 0);
  EXPECT_EQ(states.at(1).at("requests"), 2);
  EXPECT_LT(states.at(1).at("free_blocks"), states.at(0).at("free_blocks"));
}

// What lasts when all is made, and what profiling saw come and go, is all that may be taken.
TEST(State, WhatIsMadeAfterTheSizingWasCounted) {
  for (const char* drafter : {"none", "dspark", "mtp"}) {
    auto config = test::small_config();
    if (drafter != std::string("none")) test::add_drafter(config, drafter, 5);
    config.limits.gpu_memory_utilization = 0.5;
    test::Events events;
    run(events, config);
    std::map<std::string, std::int64_t> lasting, peak;
    for (const json& end : events.of("phase_end")) {
      lasting[end.at("phase")] = end.value("persistent_bytes", std::int64_t{0});
      peak[end.at("phase")] = end.value("peak_bytes", std::int64_t{0});
    }
    const std::int64_t all = lasting["ready"] + peak["profile"] - lasting["profile"];
    const json kv = events.of("kv").at(0);
    const std::int64_t budget = kv.at("budget_bytes");
    EXPECT_EQ(budget, 144'000'000'000);
    EXPECT_LE(all, budget) << drafter;
    EXPECT_GT(all, budget - kv.at("block_stride").get<std::int64_t>() - 4096) << drafter;
  }
}

TEST(State, TheNullBlockStaysAsItWas) {
  test::Events events;
  run(events, tiny());
  const auto states = events.of("state");
  ASSERT_EQ(states.size(), 3u);
  for (const json& state : states) {
    EXPECT_EQ(state.at("null_block"), states[0].at("null_block"));
    EXPECT_EQ(state.at("kv_nan"), 0);
  }
}

TEST(State, DummySlotsInTheNullBlockShow) {
  test::Events events;
  auto config = tiny();
  config.checks.numerics = "off";  // what shows is what dummy tokens wrote
  config.seams["warmup.dummy_slots"] = "null_block";
  run(events, config);
  const auto states = events.of("state");
  EXPECT_NE(states.at(1).at("null_block"), states.at(0).at("null_block"));
}

TEST(SpoiledContents, ChangeNothing) {
  test::Events events;
  run(events, tiny());
  const auto poisoned = events.of("poisoned");
  ASSERT_EQ(poisoned.size(), 2u);
  EXPECT_EQ(poisoned[0].at("status"), "begin");
  EXPECT_EQ(poisoned[1].at("status"), "end");
  EXPECT_FALSE(poisoned[1].at("before").get<std::string>().empty());
  EXPECT_EQ(poisoned[1].at("before"), poisoned[1].at("after"));
}

TEST(SpoiledContents, OnlyWhereChecksAreWanted) {
  test::Events events;
  auto config = tiny();
  config.checks.numerics = "off";
  run(events, config);
  EXPECT_TRUE(events.of("poisoned").empty());
  config.checks.numerics = "sampled";
  config.device = accounting_device().name();
  test::Events accounted;
  run(accounted, config);
  EXPECT_TRUE(accounted.of("poisoned").empty());
}

// The kernels that warmup launches are the same with and without: nothing is warmed by the check.
TEST(SpoiledContents, WarmNothing) {
  const auto launched = [](const char* checks) {
    auto config = tiny();
    config.checks.numerics = checks;
    config.seams["warmup.prefill_reach"] = "short_steps";
    test::Events events;
    run(events, config);
    std::set<std::string> out;
    for (const json& launch : events.of("launch"))
      if (launch.at("phase") == "warmup")
        out.insert(launch.at("layer_kind").get<std::string>() + "/" +
                   launch.at("kernel").get<std::string>());
    return out;
  };
  EXPECT_EQ(launched("sampled"), launched("off"));
}

}  // namespace
}  // namespace warmgate::engine
