// What has to hold for any config, drawn at random from each family.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "harness/plan/shrink/testing.h"

namespace warmgate::plan::shrink {
namespace {

// Keys that a small config may say otherwise; every other one stays to the letter.
const std::set<std::string> kMayChange = {"num_hidden_layers",
                                          "compress_ratios",
                                          "layer_types",
                                          "layers_block_type",
                                          "hybrid_override_pattern",
                                          "num_hash_layers",
                                          "first_k_dense_replace",
                                          "max_window_layers",
                                          "mlp_only_layers",
                                          "dspark_target_layer_ids",
                                          "eagle_aux_hidden_state_layer_ids",
                                          "n_routed_experts",
                                          "num_experts",
                                          "num_local_experts"};

// Every kind of the old model by a reading of its own, from the lists alone.
std::map<std::string, int> raw_kinds(const Json& config, const char* list) {
  std::map<std::string, int> out;
  const auto layers = config.at("num_hidden_layers").get<std::size_t>();
  for (std::size_t i = 0; i < layers; ++i) {
    const Json& value = config.at(list);
    ++out[value.is_string() ? value.get<std::string>().substr(i, 1) : value.at(i).dump()];
  }
  return out;
}

void expect_promises(const Json& config, const Result& r, std::int64_t ep) {
  EXPECT_EQ(r.after.pairs(), r.before.pairs());
  EXPECT_LE(r.after.layers(), r.before.layers());
  EXPECT_GE(r.after.layers(), std::min<std::int64_t>(2, r.before.layers()));
  for (const auto& [key, value] : config.items()) {
    if (kMayChange.count(key) == 0 && key != "auto_map") {
      EXPECT_EQ(r.config.at(key), value) << key;
    }
  }
  EXPECT_EQ(r.config.size(), config.size() - config.count("auto_map"));
  for (const char* list : {"compress_ratios", "layer_types", "hybrid_override_pattern"}) {
    if (!config.contains(list)) continue;
    const auto before = raw_kinds(config, list), after = raw_kinds(r.config, list);
    EXPECT_EQ(before.size(), after.size()) << list;
  }
  // Taps: as many, ascending, in range, on the kind that they were on.
  ASSERT_EQ(r.after.taps.size(), r.before.taps.size());
  for (std::size_t i = 0; i < r.after.taps.size(); ++i) {
    EXPECT_LT(r.after.taps[i], r.after.layers());
    if (i > 0) {
      EXPECT_GT(r.after.taps[i], r.after.taps[i - 1]);
    }
    EXPECT_EQ(r.after.target.at(static_cast<std::size_t>(r.after.taps[i])),
              r.before.target.at(static_cast<std::size_t>(r.before.taps[i])));
  }
  EXPECT_EQ(r.after.draft, r.before.draft);
  for (const char* ids : {"mlp_only_layers"}) {
    if (!r.config.contains(ids)) continue;
    for (const Json& id : r.config.at(ids)) EXPECT_LT(id.get<std::int64_t>(), r.after.layers());
  }
  if (r.before.experts.count > 0) {
    const Experts& e = r.after.experts;
    EXPECT_GE(e.count, e.top_k);
    EXPECT_EQ(r.before.experts.count % e.count, 0);
    EXPECT_EQ(e.count % ep, 0);
    EXPECT_EQ(std::gcd(e.count, 8), std::gcd(r.before.experts.count, 8));
    EXPECT_EQ(e.count % e.groups, 0);
    EXPECT_GE(e.count / e.groups * e.top_k_groups, e.top_k);
  }
  EXPECT_LE(r.bytes, r.full_bytes * (1 + 1e-12));
}

class EveryFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamily, RandomConfigsKeepWhatIsPromised) {
  RandomConfig random(7);
  for (int i = 0; i < 40; ++i) {
    const Json config = random.next(GetParam());
    Request request;
    request.per_kind = 1 + i % 3;
    const Result r = shrunk(config, request);
    SCOPED_TRACE(config_text(config));
    expect_promises(config, r, 1);
    // A config that is small already stays what it is.
    const Result again = shrunk(r.config, request);
    EXPECT_EQ(again.config, r.config);
    EXPECT_TRUE(again.changes.empty());
    if (HasFailure()) return;
  }
}

TEST_P(EveryFamily, RanksDivideWhatTheyDidBefore) {
  RandomConfig random(11);
  int taken = 0;
  for (int i = 0; i < 30; ++i) {
    const Json config = random.next(GetParam());
    Request request;
    request.parallel = {1 << (i % 3), 1 << (i % 4)};
    const std::string problems = problems_of(config_text(config), request);
    Request plain;
    plain.parallel.tp = request.parallel.tp;
    if (!problems.empty()) {
      // Refused only because the experts, or the lack of them, do not divide.
      EXPECT_EQ(problems_of(config_text(config), plain), "") << problems;
      EXPECT_NE(problems.find("--ep"), std::string::npos) << problems;
      continue;
    }
    ++taken;
    const Result r = shrunk(config, request);
    expect_promises(config, r, r.before.experts.count > 0 ? request.parallel.ep : 1);
    EXPECT_LE(r.bytes_per_rank, r.bytes);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 5);
}

TEST_P(EveryFamily, PerKindIsAMinimumWhereTheModelHasSoMany) {
  RandomConfig random(13);
  for (int i = 0; i < 20; ++i) {
    const Json config = random.next(GetParam());
    Request request;
    request.per_kind = 2;
    const Result r = shrunk(config, request);
    std::map<Pair, std::int64_t> before, after;
    for (std::int64_t id = 0; id < r.before.layers(); ++id) ++before[r.before.pair_of(id)];
    for (std::int64_t id = 0; id < r.after.layers(); ++id) ++after[r.after.pair_of(id)];
    for (const auto& [pair, count] : before)
      EXPECT_GE(after[pair], std::min<std::int64_t>(2, count)) << pair.first.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Shrink, EveryFamily, ::testing::ValuesIn(fixture_names()),
                         [](const auto& family) {
                           std::string name = family.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace warmgate::plan::shrink
