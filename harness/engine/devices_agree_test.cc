// Layers cannot tell one device from another: a run whose ops are executed tells the same story as
// one where they are only accounted.
#include <gtest/gtest.h>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/phases/engine.h"
#include "harness/engine/test_events.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;

/// Events without what may differ: times, addresses, contents. Checks are off: with them warmup
/// serves a request of its own around its dummy steps.
std::vector<std::string> story(scenario::Resolved config, const std::string& device) {
  config.device = device;
  config.checks.numerics = "off";
  test::Events events;
  jit::Compiler compiler({{}, jit::Backend::kHost});
  const auto collectives = make_local_collectives();
  EXPECT_TRUE(run_engine(config, events.writer, *collectives, compiler)) << device;
  std::vector<std::string> out;
  for (json event : events.all()) {
    const std::string ev = event["ev"];
    if (ev == "step") event.erase("id");
    if (ev == "check" || ev == "heartbeat") continue;
    for (const char* field :
         {"t", "ms", "base", "digest", "synthetic", "seq", "keeps", "ids", "kv_nan", "null_block"})
      event.erase(field);
    if (ev == "counter" && event["name"] == "peak_rss_bytes") continue;  // of this process
    if (ev == "phase_end") event.erase("checks");
    out.push_back(event.dump());
  }
  return out;
}

void expect_agreement(const scenario::Resolved& config) {
  const auto accounted = story(config, std::string(accounting_device().name()));
  const auto executed = story(config, testing::executing_device());
  ASSERT_GT(accounted.size(), 100u);
  for (std::size_t i = 0; i < std::min(accounted.size(), executed.size()); ++i) {
    ASSERT_EQ(accounted[i], executed[i]) << "event " << i;
  }
  EXPECT_EQ(accounted.size(), executed.size());
}

scenario::Resolved served(std::vector<std::int64_t> ratios) {
  auto config = testing::executed(std::move(ratios));
  config.limits.max_model_len = 512;
  config.limits.max_num_batched_tokens = 128;
  config.limits.max_num_seqs = 4;
  config.workload.groups = {{1, 300, 3, 0, "long"}, {2, 20, 3, 2, "short"}};
  return config;
}

TEST(DevicesAgree, AllKinds) { expect_agreement(served({0, 4, 128})); }

TEST(DevicesAgree, WithABlockDrafter) {
  auto config = served({0, 4, 128});
  testing::add_drafter(config, "dspark", 7);
  config.drafter.markov_rank = 16;
  expect_agreement(config);
}

TEST(DevicesAgree, WithAnMtpDrafter) {
  auto config = served({0, 4});
  testing::add_drafter(config, "mtp", 1);
  expect_agreement(config);
}

}  // namespace
}  // namespace warmgate::engine
