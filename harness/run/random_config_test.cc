// The engine without a behaviour breaks no contract, whatever it is configured to be: a few hundred
// random configurations with boundary values, each a real run, every contract judged.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using verdict::Outcome;

/// Seeded: WARMGATE_TEST_SEED repeats a failure, and every message names its seed.
class Configurations {
 public:
  explicit Configurations(std::uint64_t seed) : random_(seed) {}

  std::string yaml(int number) {
    const std::int64_t length =
        pick<std::int64_t>({128, 129, 512, 4096, 5000, 65536, 131072, 1048576});
    const std::int64_t batched = pick<std::int64_t>({16, 17, 64, 512, 2048, 8191, 8192, 16384});
    const std::int64_t seqs = pick<std::int64_t>({1, 2, 3, 15, 16, 17, 64, 255, 256, 1024});
    std::string out = fmt::format(
        "scenario: random-{}\nabout: A random configuration.\n"
        "model: {{preset: small-{}, layers: [{}]}}\n"
        "limits: {{max_model_len: {}, max_num_batched_tokens: {}, max_num_seqs: {}, "
        "device_memory_bytes: 80 GiB, async_scheduling: {}}}\n"
        "parallel: {{tp: {}}}\narchitectures: [sm_90a]\nseed: {}\n",
        number, pick<const char*>({"flash", "dspark"}), layers(), length, batched, seqs,
        chance(2) ? "true" : "false", chance(4) ? 2 : 1, number);
    out += drafter();
    return out + workload(length, batched, seqs);
  }

 private:
  bool chance(int one_in) { return std::uniform_int_distribution<int>(1, one_in)(random_) == 1; }
  template <typename T>
  T pick(std::vector<T> from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random_)];
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, std::max(low, high))(random_);
  }

  std::string layers() {
    std::string out;
    for (std::int64_t i = 0, n = between(1, 7); i < n; ++i) {
      out += fmt::format("{}{{ratio: {}}}", i > 0 ? ", " : "", pick<int>({0, 1, 4, 128}));
    }
    return out;
  }
  std::string drafter() {
    if (chance(2)) return "";
    const bool dspark = chance(2);
    return fmt::format(
        "drafter: {{method: {}, num_speculative_tokens: {}, topk_indices_buffer: {}}}\n",
        dspark ? "dspark" : "mtp", dspark ? between(5, 8) : between(1, 3),
        chance(2) ? "absent" : "own");
  }
  // Prompts of at most 100 steps, so that a run of the largest context stays short.
  std::string workload(std::int64_t length, std::int64_t batched, std::int64_t seqs) {
    std::string out = "workload:\n  groups:\n";
    for (std::int64_t i = 0, n = between(1, 3); i < n; ++i) {
      const std::int64_t output = between(1, 9);
      const std::int64_t prompt = std::clamp<std::int64_t>(
          pick<std::int64_t>({1, 2, 15, 16, 17, 127, 128, 129, 300, 513, 2049, 9000, length}), 1,
          std::min(length - output, 100 * batched));
      out += fmt::format(
          "    - {{requests: {}, prompt_tokens: {}, output_tokens: {}, start_step: {}}}\n",
          between(1, std::min<std::int64_t>(seqs + 1, 6)), prompt, output, i * between(0, 3));
    }
    return out;
  }

  std::mt19937_64 random_;
};

class RandomConfigurations : public Product {};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kConfigurations = 80;  // the engine is five times slower under them
#else
constexpr int kConfigurations = 240;
#endif

// What only a server that is looked at from outside, a process with a probe in it, or a device with
// graphs can break.
bool of_servers(std::string_view contract) {
  return contract == "code-ready" || contract == "memory-kept" || contract == "stores-declared" ||
         contract == "speculation-live" || contract == "answers-differ" ||
         contract == "spans-agree" || contract == "graph-stable";
}

TEST_F(RandomConfigurations, BreakNoContract) {
  const char* wish = std::getenv("WARMGATE_TEST_SEED");
  const std::uint64_t seed = wish != nullptr ? std::strtoull(wish, nullptr, 10) : 20260810;
  const char* count = std::getenv("WARMGATE_TEST_CONFIGURATIONS");
  const int wanted = count != nullptr ? std::atoi(count) : kConfigurations;
  Configurations random(seed);
  std::vector<scenario::Scenario> scenarios;
  std::map<std::string, std::string> text_of;
  std::map<std::string, int> refusals;
  for (int i = 0; static_cast<int>(scenarios.size()) < wanted && i < 4 * wanted; ++i) {
    const std::string text = random.yaml(i);
    try {
      scenarios.push_back(scenario::load_scenario(put("random.yaml", text), options_.load));
      text_of[scenarios.back().name] = text;
    } catch (const scenario::ScenarioError& error) {
      ++refusals[error.problems().at(0).message];  // impossible combinations
    }
  }
  ASSERT_EQ(static_cast<int>(scenarios.size()), wanted)
      << "too many are refused, e.g. " << (refusals.empty() ? "" : refusals.begin()->first);

  options_.jit = jit::Backend::kHost;
  const GateResult result = run_loaded(std::move(scenarios), options_, cancel_);
  std::map<std::string, int> kept;
  int wrong = 0;
  for (const ScenarioResult& each : result.scenarios) {
    const verdict::RunRecord& run = each.variants.at(0).runs.at(0);
    for (const contract::Result& judged : run.contracts) {
      kept[judged.contract] += judged.state == contract::State::kKept ? 1 : 0;
      // Nothing is computed here, so nothing can be compared.
      const bool computed = judged.contract == "numerics";
      if (of_servers(judged.contract)) continue;
      EXPECT_EQ(judged.state == contract::State::kNotObserved, computed)
          << judged.contract << ": " << judged.why << "\n"
          << text_of[each.scenario.name];
    }
    if (run.outcome == Outcome::kPassed) continue;
    if (++wrong > 5) continue;
    ADD_FAILURE() << "seed " << seed << "\n" << text_of[each.scenario.name] << story(run);
  }
  EXPECT_EQ(wrong, 0) << "of " << wanted;
  // Not hollow: each contract spoke, most of them in every run.
  for (const contract::Contract* contract : contract::builtin_contracts()) {
    if (contract->name() == "numerics" || of_servers(contract->name())) continue;
    if (contract->name() == "cache-sound") continue;  // the host half keeps no kernels
    EXPECT_GT(kept[std::string(contract->name())], wanted / 10) << contract->name();
  }
}

}  // namespace
}  // namespace warmgate::run::testing
