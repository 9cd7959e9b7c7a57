#include "harness/engine/checks/numerics.h"

#include <gmock/gmock.h>

#include <optional>

#include "harness/engine/checks/fake_layer.h"

namespace warmgate::engine::checks {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeLayer;
using testing::Fault;
using ::testing::IsEmpty;

std::uint32_t fresh_seed() {
  static std::random_device device;
  return device();
}

struct Where {
  Kind kind;
  std::int64_t computed, query;
};
std::ostream& operator<<(std::ostream& out, const Where& w) {
  return out << to_string(w.kind) << " " << w.computed << "+" << w.query;
}

class RightData : public ::testing::TestWithParam<Where> {};

TEST_P(RightData, Passes) {
  const auto seed = fresh_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  FakeLayer layer(GetParam().kind, seed);
  layer.step(GetParam().computed, GetParam().query);
  const auto results = layer.results();
  EXPECT_THAT(layer.failures(), IsEmpty());
  EXPECT_EQ(results.count("attention"), 1u);
  EXPECT_EQ(results.count("window_key"), 1u);
  EXPECT_EQ(results.count("compressor_state"), GetParam().kind == Kind::kSwaOnly ? 0u : 1u);
  EXPECT_EQ(results.count("topk"), GetParam().kind == Kind::kC4a ? 1u : 0u);
  for (const auto& [tensor, e] : results) {
    EXPECT_GT(e["rows"], 0) << tensor;
    EXPECT_EQ(e["kind"], "numerics");
    EXPECT_EQ(e["phase"], "serve");
    EXPECT_EQ(e["layer_kind"], to_string(GetParam().kind)) << tensor;
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, RightData,
                         ::testing::Values(Where{Kind::kSwaOnly, 0, 1},
                                           Where{Kind::kSwaOnly, 127, 2},
                                           Where{Kind::kSwaOnly, 128, 1}, Where{Kind::kC4a, 0, 3},
                                           Where{Kind::kC4a, 3, 1}, Where{Kind::kC4a, 63, 6},
                                           Where{Kind::kC4a, 62, 1}, Where{Kind::kC128a, 126, 1},
                                           Where{Kind::kC128a, 127, 1},
                                           Where{Kind::kC128a, 254, 3}));

TEST(Numerics, MxFp4IndexersToo) {
  const auto seed = fresh_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  FakeLayer layer(Kind::kC4a, seed, "sampled", true);
  layer.step(63, 5);
  EXPECT_THAT(layer.failures(), IsEmpty());
}

// Each fault is caught, by the tensor that it belongs to.
struct Case {
  Fault fault;
  Where where;
  const char* tensor;
};
class Faults : public ::testing::TestWithParam<Case> {};

TEST_P(Faults, AreCaught) {
  const Case& c = GetParam();
  std::uint32_t seed = 0;
  std::optional<FakeLayer> made;
  // Scores may tie, and then the worst of them is no wrong choice.
  for (int tries = 0; tries < 20 && (!made || made->topk_gap < 1e-3); ++tries) {
    seed = static_cast<std::uint32_t>(fresh_seed());
    made.emplace(c.where.kind, seed);
    made->step(c.where.computed, c.where.query, c.fault);
    if (c.fault != Fault::kTopkWorst) break;
  }
  SCOPED_TRACE("seed " + std::to_string(seed));
  FakeLayer& layer = *made;
  EXPECT_THAT(layer.failures(), Contains(c.tensor)) << c.where;
  // Said at once, and again with the phase's worst.
  int lines = 0;
  for (const auto& e : layer.log.events("check")) lines += e["tensor"] == c.tensor;
  EXPECT_EQ(lines, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Each, Faults,
    ::testing::Values(Case{Fault::kWindowOneShort, {Kind::kSwaOnly, 130, 1}, "attention"},
                      Case{Fault::kWindowOneLong, {Kind::kSwaOnly, 128, 1}, "attention"},
                      Case{Fault::kEntryTooEarly, {Kind::kC128a, 260, 1}, "attention"},
                      Case{Fault::kEntryMissing, {Kind::kC128a, 127, 1}, "compressed_key"},
                      Case{Fault::kEntryMissing, {Kind::kC4a, 7, 1}, "compressed_key"},
                      Case{Fault::kEntryWrongPlace, {Kind::kC4a, 6, 4}, "compressed_key"},
                      Case{Fault::kKeyWrongSlot, {Kind::kSwaOnly, 64, 1}, "window_key"},
                      Case{Fault::kKeyNotRotated, {Kind::kSwaOnly, 5, 1}, "window_key"},
                      Case{Fault::kStateWithoutApe, {Kind::kC4a, 4, 1}, "compressor_state"},
                      Case{Fault::kStateWithoutApe, {Kind::kC4a, 4, 1}, "indexer_state"},
                      Case{Fault::kHeadNotRotated, {Kind::kC128a, 9, 1}, "query"},
                      Case{Fault::kPaddingHeads, {Kind::kSwaOnly, 9, 1}, "query"},
                      Case{Fault::kTopkTruncated, {Kind::kC4a, 62, 1}, "topk"},
                      Case{Fault::kTopkTruncated, {Kind::kC4a, 11, 1}, "topk"},
                      Case{Fault::kTopkWorst, {Kind::kC4a, 62, 1}, "topk"},
                      Case{Fault::kTopkTail, {Kind::kC4a, 11, 1}, "topk"},
                      Case{Fault::kNoSink, {Kind::kSwaOnly, 2, 1}, "attention"},
                      Case{Fault::kNanOutput, {Kind::kSwaOnly, 2, 2}, "attention"},
                      Case{Fault::kProductColumns, {Kind::kSwaOnly, 2, 1}, "fused_wqa_wkv"},
                      Case{Fault::kOperandScale, {Kind::kSwaOnly, 2, 1}, "output_operand"}));

TEST(Numerics, AFreedBlockThatIsReadIsAMismatch) {
  FakeLayer layer(Kind::kSwaOnly, fresh_seed());
  layer.step(200, 1, Fault::kFreedBlock);
  const auto results = layer.results();
  EXPECT_GT(results.at("attention")["mismatches"], 0);
  EXPECT_THAT(results.at("attention")["message"].get<std::string>(),
              ::testing::HasSubstr("freed block"));
}

TEST(Numerics, AllComparesMoreRowsThanSampled) {
  FakeLayer sampled(Kind::kSwaOnly, 1), all(Kind::kSwaOnly, 1, "all");
  sampled.step(60, 12);
  all.step(60, 12);
  EXPECT_EQ(sampled.results().at("window_key")["rows"], 3);
  EXPECT_EQ(all.results().at("window_key")["rows"], 12);
  EXPECT_THAT(all.failures(), IsEmpty());
}

TEST(Numerics, TheReferenceOfWindowLayersIsTheScenariosChoice) {
  // At position 3000 plain rotation and YaRN are apart.
  FakeLayer layer(Kind::kSwaOnly, fresh_seed());
  layer.step(3000, 1);
  EXPECT_THAT(layer.failures(), IsEmpty());
  scenario::Resolved other = layer.config;
  other.checks.rope_reference = "plain";
  Numerics plain(other, layer.dims, layer.layers, layer.log.recorder);
  StepHost host;
  host.build({{{0, 3000, 1, {}}}, false}, layer.dims);
  plain.begin_step(host, layer.cache->tables());
  plain.end_phase();
  const auto events = layer.log.events("check");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back()["tensor"], "rope_table");
  EXPECT_GT(events.back()["error"], events.back()["limit"]);
}

}  // namespace
}  // namespace warmgate::engine::checks
