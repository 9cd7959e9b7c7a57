// The worker program on a device that executes: as several ranks, and where the machine is too
// small.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "harness/engine/phases/random_config.h"
#include "harness/engine/testing_run.h"
#include "harness/engine/worker_process.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;
using test::arguments;
using test::collectives_memory;
using test::ConfigFile;
using test::Worker;

TEST(WorkerProgram, WhatThisMachineCannotHoldIsNotEvenTried) {
  scenario::Resolved config = test::small_config();
  config.device = testing::executing_device();
  config.model.vocab_size = 1 << 30;  // two tables of a terabyte
  config.limits.device_memory_bytes = std::int64_t{8} << 40;
  const ConfigFile file(config);
  Worker worker(arguments(file));
  worker.finish();
  EXPECT_EQ(worker.code, 2);
  ASSERT_EQ(worker.of("setup_error").size(), 1u);
  const json error = worker.of("setup_error")[0];
  EXPECT_GT(error.at("needed_bytes"), std::int64_t{2} << 40);
  EXPECT_LT(error.at("available_bytes"), error.at("needed_bytes"));
  EXPECT_NE(error.at("message").get<std::string>().find("bytes of memory"), std::string::npos);
  EXPECT_TRUE(worker.of("phase_begin").empty());
}

/// Served ids of each rank of a world.
std::vector<json> streams(int world) {
  scenario::Resolved config = testing::executed({0, 4, 128});
  config.model.num_attention_heads = 8;
  config.model.o_groups = 8;
  config.limits.max_model_len = 192;
  config.limits.max_num_batched_tokens = 48;
  config.seams["warmup.prefill_reach"] = "short_steps";
  config.workload.groups = {{2, 40, 6, 0, "a"}};
  config.parallel.tp = world;
  config.collective_deadline_ms = 60'000;
  const ConfigFile file(config);
  const int memory = collectives_memory(world);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int r = 0; r < world; ++r) {
    workers.push_back(
        std::make_unique<Worker>(arguments(file, r, world, memory), std::vector<int>{memory}));
  }
  std::vector<json> out;
  for (const auto& worker : workers) {
    worker->finish();
    EXPECT_EQ(worker->code, 0);
    json ids = json::array();
    for (const json& request : worker->of("request")) {
      EXPECT_EQ(request.at("synthetic"), false);
      ids.push_back(request.at("ids"));
    }
    out.push_back(ids);
  }
  ::close(memory);
  return out;
}

TEST(WorkerProgram, RanksSampleTheSameIds) {
  const json one = streams(1).at(0);
  ASSERT_EQ(one.size(), 2u);
  const std::vector<json> ranks = streams(2);
  EXPECT_EQ(ranks[0], ranks[1]);
  // Where margins are small a later token may differ (tensor_parallel_test.cc measures that).
  EXPECT_EQ(ranks[0][0].size(), one[0].size());
}

}  // namespace
}  // namespace warmgate::engine
