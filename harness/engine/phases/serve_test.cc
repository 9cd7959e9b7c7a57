// Serving with real ids: what is sampled comes from logits, and nothing but the tokens decides it.
#include <gtest/gtest.h>

#include <map>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/phases/engine.h"
#include "harness/engine/test_events.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;

scenario::Resolved config_of(std::vector<scenario::RequestGroup> groups) {
  auto config = testing::executed({0, 4, 128});
  config.limits.max_model_len = 192;
  config.limits.max_num_batched_tokens = 48;
  config.limits.max_num_seqs = 4;
  config.seams["warmup.prefill_reach"] = "short_steps";
  config.workload.groups = std::move(groups);
  return config;
}

struct Story {
  bool ok = false;
  std::map<std::int64_t, json> requests;
  std::map<std::string, double> counters;
  std::string fault;
  double preemptions() const {
    const auto it = counters.find("preemptions");
    return it == counters.end() ? 0 : it->second;
  }
};
Story serve(const scenario::Resolved& config) {
  test::Events events;
  jit::Compiler compiler({{}, jit::Backend::kHost});
  const auto collectives = make_local_collectives();
  Story out;
  out.ok = run_engine(config, events.writer, *collectives, compiler);
  for (const json& e : events.of("request")) out.requests[e.at("id")] = e;
  for (const json& e : events.of("counter")) out.counters[e.at("name")] = e.at("value");
  for (const json& e : events.of("fault")) out.fault = e.at("message");
  return out;
}

TEST(ServeExecuted, IdsAreToldAndAreNotSynthetic) {
  const Story served = serve(config_of({{2, 30, 40, 0, "a"}}));
  ASSERT_TRUE(served.ok) << served.fault;
  ASSERT_EQ(served.requests.size(), 2u);
  for (const auto& [id, request] : served.requests) {
    EXPECT_EQ(request.at("synthetic"), false);
    EXPECT_EQ(request.at("tokens"), 40);
    ASSERT_EQ(request.at("ids").size(), 32u);  // the first of them
    for (const json& token : request.at("ids")) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, 256);
    }
  }
  EXPECT_NE(served.requests.at(0).at("ids"), served.requests.at(1).at("ids"));
  EXPECT_NE(served.requests.at(0).at("digest"), served.requests.at(1).at("digest"));
}

TEST(ServeExecuted, TheDigestIsOfTheIds) {
  const Story served = serve(config_of({{1, 30, 9, 0, "a"}}));
  ASSERT_TRUE(served.ok) << served.fault;
  std::uint64_t digest = 0;
  for (const json& token : served.requests.at(0).at("ids"))
    digest = (digest ^ token.get<std::uint64_t>()) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  EXPECT_EQ(served.requests.at(0).at("digest"), text);
}

TEST(ServeExecuted, NeitherCompanyNorChunksNorPreemptionChangeAStream) {
  const std::vector<scenario::RequestGroup> alone = {{1, 150, 12, 0, "a"}};
  const std::vector<scenario::RequestGroup> together = {
      {1, 150, 12, 0, "a"}, {2, 60, 9, 0, "b"}, {1, 100, 30, 4, "c"}};
  const Story calm = serve(config_of(together));
  ASSERT_TRUE(calm.ok) << calm.fault;
  const Story first = serve(config_of(alone));
  EXPECT_EQ(first.requests.at(0).at("ids"), calm.requests.at(0).at("ids"));

  scenario::Resolved chunked = config_of(together);
  chunked.limits.max_num_batched_tokens = 17;
  const Story slow = serve(chunked);
  // So small a pool that requests are put off and computed anew.
  scenario::Resolved tight = chunked;
  testing::Rank rank(tight);
  const KvPlan plan = EngineModel(rank.context).plan_kv(80'000'000);
  tight.limits.kv_pool_bytes = plan.blocks_per_request * plan.block_stride;
  const Story short_of = serve(tight);
  for (const Story* other : {&slow, &short_of}) {
    ASSERT_TRUE(other->ok) << other->fault;
    for (const auto& [id, request] : calm.requests) {
      EXPECT_EQ(other->requests.at(id).at("ids"), request.at("ids")) << id;
      EXPECT_EQ(other->requests.at(id).at("digest"), request.at("digest")) << id;
    }
  }
  EXPECT_GT(short_of.preemptions(), 0);
  EXPECT_EQ(calm.preemptions(), 0);
}

TEST(ServeExecuted, SeedsGiveOtherModelsAndPrompts) {
  scenario::Resolved config = config_of({{1, 30, 16, 0, "a"}});
  const Story one = serve(config), again = serve(config);
  config.seed += 1;
  const Story two = serve(config);
  EXPECT_EQ(one.requests.at(0).at("ids"), again.requests.at(0).at("ids"));
  EXPECT_NE(one.requests.at(0).at("ids"), two.requests.at(0).at("ids"));
}

}  // namespace
}  // namespace warmgate::engine
