// The engine without any behaviour keeps its promises, whatever it is configured to.
#include "harness/engine/phases/engine.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "harness/engine/phases/random_config.h"
#include "harness/engine/test_events.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;
using test::Events;

jit::Compiler& compiler() {
  static jit::Compiler shared({"", jit::Backend::kHost});
  return shared;
}

struct Rank {
  Events events;
  bool ok = false;
};

/// All ranks of a configuration, each in a thread of its own.
std::vector<std::unique_ptr<Rank>> run(const std::vector<scenario::Resolved>& configs) {
  const int world = static_cast<int>(configs.size());
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < world; ++r) ranks.push_back(std::make_unique<Rank>());
  if (world == 1) {
    const auto local = make_local_collectives();
    ranks[0]->ok = run_engine(configs[0], ranks[0]->events.writer, *local, compiler());
    return ranks;
  }
  const int memory = ::memfd_create("collectives", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(memory, collectives_bytes(world)), 0);
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      const auto shared = make_shared_collectives(memory, r, world, 20'000);
      ranks[i]->ok = run_engine(configs[i], ranks[i]->events.writer, *shared, compiler());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ::close(memory);
  return ranks;
}

std::vector<std::unique_ptr<Rank>> run(const scenario::Resolved& config) {
  return run(std::vector(static_cast<std::size_t>(config.parallel.tp), config));
}

std::string text(const json& event, const char* key) { return event.value(key, std::string()); }

/// What one rank's events say, put so that breaches are easy to look for.
class Judge {
 public:
  explicit Judge(const std::vector<json>& events) {
    for (const json& event : events) take(event);
  }
  std::vector<std::string> breaches;
  std::vector<std::string> phases;
  std::map<std::string, double> counters;
  std::vector<std::string> collectives;

 private:
  void broken(const std::string& what) { breaches.push_back(what); }

  void take(const json& event) {
    const std::string ev = event.at("ev");
    const bool serving = phase_ == "serve" || phase_ == "shutdown";
    if (ev == "phase_begin") phase_ = event.at("phase");
    if (ev == "phase_end") {
      if (event.at("status") != "ok") broken("phase " + phase_ + " failed");
      phases.push_back(event.at("phase"));
      if (event.contains("free_blocks") && phase_ != "warmup" &&
          event["free_blocks"] != event["total_blocks"])
        broken("blocks missing after " + phase_);
      phase_.clear();
    }
    if (ev == "fault") broken("fault " + text(event, "type") + ": " + text(event, "message"));
    if (ev == "skip" && !event.at("declared").get<bool>()) broken("skip " + text(event, "step"));
    if (ev == "requires" && !event.at("owned").get<bool>())
      broken("missing " + text(event, "resource"));
    if (ev == "counter") counters[event.at("name")] = event.at("value");
    if (ev == "stage") stage(event);
    if (ev == "alloc" && serving && event.at("lifetime") == "persistent")
      broken("allocated in " + phase_ + ": " + text(event, "owner"));
    if (ev == "compile") {
      if (serving) broken("compiled in " + phase_ + ": " + text(event, "key"));
      if (event.at("status") == "ok") warmed_.insert(text(event, "key"));
    }
    if (ev == "launch") launch(event);
    if (ev == "workspace") workspace(event, serving);
    if (ev == "collective")
      collectives.push_back(text(event, "communicator") + " " + text(event, "kind") + " " +
                            event.at("bytes").dump() + " x" + event.at("count").dump());
  }

  void stage(const json& event) {
    const std::string name = event.at("stage");
    if (event.at("status") == "failed") broken("stage " + name + " failed");
  }
  void launch(const json& event) {
    const std::string key = event.at("key"), kernel = event.at("kernel");
    const std::string stage = text(event, "layer_kind") + "/" + kernel;
    if (phase_ != "serve") {
      reached_.insert(stage);
    } else if (reached_.count(stage) == 0) {
      broken("first reached in serve: " + stage);
    }
    if (phase_ == "serve" && !key.empty() && warmed_.count(key) == 0) broken("not warmed: " + key);
  }
  void workspace(const json& event, bool serving) {
    const std::string who = text(event, "layer_kind") + "/" + text(event, "consumer");
    const std::int64_t bytes = event.at("requested");
    if (!serving) {
      reserved_[who] = std::max(reserved_[who], bytes);
    } else if (bytes > reserved_[who] || event.at("grew")) {
      broken("workspace of " + who + ": " + std::to_string(bytes) + " of " +
             std::to_string(reserved_[who]));
    }
  }

  std::string phase_;
  std::set<std::string> warmed_, reached_;
  std::map<std::string, std::int64_t> reserved_;
};

const std::vector<std::string> kAllPhases = {"bootstrap", "load",  "profile", "kv",      "warmup",
                                             "capture",   "ready", "serve",   "shutdown"};

std::string text_of(const scenario::Resolved& c) {
  std::string ratios;
  for (const std::int64_t r : c.model.compress_ratios) ratios += std::to_string(r) + " ";
  std::string groups;
  for (const auto& g : c.workload.groups)
    groups += std::to_string(g.count) + "x" + std::to_string(g.prompt_tokens) + "+" +
              std::to_string(g.output_tokens) + "@" + std::to_string(g.start_step) + " ";
  return "layers " + std::to_string(c.model.num_hidden_layers) + " ratios " + ratios + "topk " +
         std::to_string(c.model.index_topk) + " heads " +
         std::to_string(c.model.num_attention_heads) + " L " +
         std::to_string(c.limits.max_model_len) + " B " +
         std::to_string(c.limits.max_num_batched_tokens) + " S " +
         std::to_string(c.limits.max_num_seqs) + " tp " + std::to_string(c.parallel.tp) + " " +
         c.drafter.method + " N " + std::to_string(c.drafter.num_speculative_tokens) + " " +
         c.architectures.front() + " async " + std::to_string(c.limits.async_scheduling) +
         " pool " + std::to_string(c.limits.kv_pool_bytes.value_or(-1)) + " work " + groups;
}

/// Tokens that the workload asks for and the context leaves room for.
double expected_tokens(const scenario::Resolved& c) {
  std::int64_t sum = 0;
  for (const auto& g : c.workload.groups) {
    const std::int64_t room = c.limits.max_model_len - g.prompt_tokens;
    if (room >= std::min<std::int64_t>(1, g.output_tokens))
      sum += g.count * std::min(g.output_tokens, room);
  }
  return static_cast<double>(sum);
}

class RandomConfigurations : public ::testing::TestWithParam<int> {};

TEST_P(RandomConfigurations, TheDefaultEngineBreaksNothing) {
  test::RandomConfigs configs(static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 40; ++i) {
    const scenario::Resolved config = configs.next();
    SCOPED_TRACE("number " + std::to_string(i) + ": " + text_of(config));
    const auto ranks = run(config);
    std::vector<std::string> calls;
    for (const auto& rank : ranks) {
      const auto events = rank->events.all();
      const Judge judge(events);
      EXPECT_TRUE(rank->ok);
      EXPECT_EQ(judge.phases, kAllPhases);
      EXPECT_EQ(judge.breaches, std::vector<std::string>());
      EXPECT_EQ(judge.counters.at("output_tokens"), expected_tokens(config));
      EXPECT_LT(events.size(), trace::kMaxLinesPerRun);
      EXPECT_EQ(events.back().at("ev"), "bye");
      if (calls.empty()) calls = judge.collectives;
      EXPECT_EQ(judge.collectives, calls);
    }
    if (HasFailure()) break;  // one configuration at a time is enough to look at
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomConfigurations, ::testing::Range(1, 9));

TEST(Engine, EveryKindThatIsSentIsDeclared) {
  scenario::Resolved config = test::small_config();
  test::add_drafter(config, "dspark", 5);
  const auto ranks = run(config);
  const std::set<std::string> declared(emitted_kinds().begin(), emitted_kinds().end());
  for (const json& event : ranks[0]->events.all())
    EXPECT_EQ(declared.count(event.at("ev")), 1u) << event.at("ev");
}

TEST(Engine, ShutdownGivesAllMemoryBack) {
  const auto ranks = run(test::small_config());
  const auto ends = ranks[0]->events.of("phase_end");
  EXPECT_GT(ends.at(7).at("persistent_bytes"), 0);
  EXPECT_EQ(ends.back().at("persistent_bytes"), 0);
  for (const auto& [pool, use] : ends.back().at("pools").items()) EXPECT_EQ(use.at("live"), 0);
  std::set<std::string> freed;
  for (const json& event : ranks[0]->events.of("free"))
    if (event.at("phase") == "shutdown") freed.insert(text(event, "pool"));
  EXPECT_EQ(freed,
            (std::set<std::string>{"buffers", "kv_cache", "metadata", "weights", "workspace"}));
}

TEST(Engine, CapacityFiguresAreToldWhole) {
  scenario::Resolved config = test::small_config();
  config.limits.kv_pool_bytes = 1'000'000'000;
  const auto ranks = run(config);
  const Judge judge(ranks[0]->events.all());
  const json kv = ranks[0]->events.of("kv").at(0);
  EXPECT_EQ(judge.counters.at("kv_blocks"), kv.at("blocks"));
  EXPECT_EQ(judge.counters.at("kv_tokens"), kv.at("tokens"));
  EXPECT_EQ(judge.counters.at("block_stride_bytes"), kv.at("block_stride"));
  EXPECT_LE(kv.at("bytes").get<std::int64_t>(), 1'000'000'000);
  EXPECT_EQ(kv.at("bytes").get<std::int64_t>(),
            kv.at("blocks").get<std::int64_t>() * kv.at("block_stride").get<std::int64_t>());
  EXPECT_GT(kv.at("groups").size(), 3u);
}

TEST(Engine, WhatIsLeftAfterProfilingBecomesTheCache) {
  scenario::Resolved config = test::small_config();
  config.limits.gpu_memory_utilization = 0.5;
  config.seams["kv.sizing"] = "profile_only";
  const auto ranks = run(config);
  const Judge judge(ranks[0]->events.all());
  const double available = 144e9 - judge.counters.at("profile_peak_bytes");
  EXPECT_LE(judge.counters.at("kv_bytes"), available);
  EXPECT_GT(judge.counters.at("kv_bytes"), available - judge.counters.at("block_stride_bytes"));
}

void expect_fault(const scenario::Resolved& config, const std::string& phase,
                  const std::string& type, const std::string& words) {
  const auto ranks = run(config);
  EXPECT_FALSE(ranks[0]->ok);
  const auto faults = ranks[0]->events.of("fault");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].at("type"), type);
  EXPECT_NE(text(faults[0], "message").find(words), std::string::npos) << faults[0];
  const auto ends = ranks[0]->events.of("phase_end");
  EXPECT_EQ(ends.back().at("phase"), phase);
  EXPECT_EQ(ends.back().at("status"), "failed");
  EXPECT_TRUE(ranks[0]->events.of("bye").empty());
  EXPECT_EQ(ranks[0]->events.all().back().at("ev"), "phase_end");
}

TEST(EngineFault, ACacheTooSmallForOneRequest) {
  scenario::Resolved config = test::small_config();
  config.limits.kv_pool_bytes = 1'000'000;
  expect_fault(config, "kv", "RuntimeError", "1000000 bytes");
}

TEST(EngineFault, NoMemoryLeftForTheCache) {
  scenario::Resolved config = test::small_config();
  config.limits.gpu_memory_utilization = 0.001;
  expect_fault(config, "kv", "RuntimeError", "no memory for the KV cache");
}

TEST(EngineFault, ADeviceTooSmallForTheWeights) {
  scenario::Resolved config = test::small_config();
  config.limits.device_memory_bytes = 1'000'000;
  expect_fault(config, "load", "OutOfMemory", "out of memory");
}

TEST(EngineFault, UtilizationOutsideItsRange) {
  for (const double value : {0.0, -1.0, 1.0001, std::nan("")}) {
    scenario::Resolved config = test::small_config();
    config.limits.gpu_memory_utilization = value;
    expect_fault(config, "bootstrap", "RuntimeError", "gpu_memory_utilization");
  }
}

TEST(EngineFault, AnUnknownDevice) {
  scenario::Resolved config = test::small_config();
  config.device = "abacus";
  expect_fault(config, "bootstrap", "RuntimeError", "abacus");
}

// The founding regression: the buffer is really missing, and the code that asks for it says so.
TEST(EngineFault, DraftLayersWithoutAnIndexBuffer) {
  scenario::Resolved config = test::small_config();
  test::add_drafter(config, "dspark", 7);
  config.drafter.topk_indices_buffer = "absent";
  config.seams["profile.topk_bound"] = "buffer_required";
  config.parallel.tp = 2;
  const auto ranks = run(config);
  for (const auto& rank : ranks) {
    EXPECT_FALSE(rank->ok);
    const json fault = rank->events.of("fault").at(0);
    if (fault.at("type") == "CollectiveError") {
      EXPECT_EQ(fault.at("kind"), "peer_failed");
      continue;
    }
    EXPECT_EQ(fault.at("type"), "AssertionError");
    EXPECT_EQ(fault.at("layer_kind"), "swaonly");
    EXPECT_EQ(fault.at("role"), "draft");
    EXPECT_EQ(fault.at("layer"), 5);
    EXPECT_EQ(fault.at("resource"), "topk_indices_buffer");
    EXPECT_EQ(fault.at("function"), "topk_of_required_buffer");
    EXPECT_EQ(fault.at("file"), "harness/engine/layers/attention_profile.cc");
    EXPECT_GT(fault.at("line").get<int>(), 0);
    EXPECT_EQ(rank->events.of("phase_end").back().at("phase"), "profile");
  }
  config.seams["profile.topk_bound"] = "kind_aware";
  for (const auto& rank : run(config)) EXPECT_TRUE(rank->ok);
}

TEST(EngineFault, RanksOfDifferentConditionsNameEachOther) {
  scenario::Resolved config = test::small_config();
  config.parallel.tp = 2;
  scenario::Resolved other = config;
  other.workload.groups[0].prompt_tokens = 65;
  const auto ranks = run({config, other});
  std::vector<std::string> last;
  for (const auto& rank : ranks) {
    const json fault = rank->events.of("fault").at(0);
    EXPECT_EQ(fault.at("type"), "CollectiveError");
    EXPECT_EQ(fault.at("kind"), "mismatch");
    const json call = rank->events.of("collective").back();
    last.push_back(call.at("bytes").dump());
  }
  EXPECT_NE(last[0], last[1]);  // what each entered is in its own events
}

TEST(EngineFault, OneRanksSmallerPoolDecidesForAll) {
  scenario::Resolved config = test::small_config();
  config.parallel.tp = 2;
  config.limits.kv_pool_bytes = 4'000'000'000;
  scenario::Resolved other = config;
  other.limits.kv_pool_bytes = 3'000'000'000;
  const auto ranks = run({config, other});
  const auto blocks = [&](std::size_t r) { return ranks[r]->events.of("kv").at(0).at("blocks"); };
  EXPECT_TRUE(ranks[0]->ok && ranks[1]->ok);
  EXPECT_EQ(blocks(0), blocks(1));
}

TEST(EngineSeams, ShortStepsLeaveThePrefillUnreached) {
  scenario::Resolved config = test::small_config();
  test::add_drafter(config, "dspark", 7);
  config.workload.groups = {{1, 128, 2, 0, "greedy"}};
  config.seams["warmup.prefill_reach"] = "short_steps";
  const Judge judge(run(config)[0]->events.all());
  EXPECT_NE(std::find(judge.breaches.begin(), judge.breaches.end(),
                      "first reached in serve: swaonly/CombineTopkSwaIndices"),
            judge.breaches.end());
}

TEST(EngineSeams, TheWorkspaceIsLockedAfterWarmupUnlessNever) {
  for (const char* value : {"after_warmup", "never"}) {
    scenario::Resolved config = test::small_config();
    config.seams["workspace.lock"] = value;
    bool locked = false;
    for (const json& event : run(config)[0]->events.of("workspace"))
      locked = locked || event.at("locked").get<bool>();
    EXPECT_EQ(locked, std::string(value) == "after_warmup");
  }
}

TEST(EngineSteps, TheMixedStepIsSkippedWhereItCannotRun) {
  for (const auto& [tokens, requests, skipped] :
       std::vector<std::tuple<std::int64_t, std::int64_t, bool>>{
           {16, 2, false}, {15, 2, true}, {16, 1, true}}) {
    scenario::Resolved config = test::small_config();
    config.limits.max_num_batched_tokens = tokens;
    config.limits.max_num_seqs = requests;
    bool found = false;
    for (const json& event : run(config)[0]->events.of("skip"))
      found = found || event.at("step") == "mixed_step";
    EXPECT_EQ(found, skipped) << tokens << " " << requests;
  }
}

TEST(EngineSteps, DistinctStepsAreFolded) {
  scenario::Resolved config = test::small_config();
  config.workload.groups = {{40, 30, 100, 0, "greedy"}, {40, 77, 50, 9, "later"}};
  const auto ranks = run(config);
  EXPECT_TRUE(ranks[0]->ok);
  std::int64_t lines = 0, steps = 0;
  for (const json& event : ranks[0]->events.of("step")) {
    if (event.at("phase") != "serve") continue;
    ++lines;
    steps += event.value("final", false) ? event.at("count").get<std::int64_t>() - 1 : 1;
  }
  EXPECT_LE(lines, 300);
  EXPECT_EQ(static_cast<double>(steps), Judge(ranks[0]->events.all()).counters.at("steps_served"));
}

}  // namespace
}  // namespace warmgate::engine
