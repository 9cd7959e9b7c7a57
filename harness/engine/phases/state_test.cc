// What start-up says about itself where contents are computed.
#include "harness/engine/phases/state.h"

#include <gtest/gtest.h>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/phases/engine.h"
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
