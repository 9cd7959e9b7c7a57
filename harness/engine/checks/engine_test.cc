// The checks on the engine itself, where it executes: it passes, and seams that make it compute
// wrong do not.
#include <gmock/gmock.h>

#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

class Engine {
 public:
  explicit Engine(const scenario::Resolved& config) : rank_(config) { rank_.start(); }

  /// 9 tokens, then two by themselves.
  void serve_shortly() {
    rank_.recorder.phase_begin("serve");
    step({{0, 0, 9}});
    step({{0, 9, 1}});
    step({{0, 10, 1}});
    end();
  }
  /// Request 0: 100 tokens, 27 more, then token by token over the end of a window of 128; request
  /// 1, beside it: a prompt in pieces, long enough for the indexer to choose.
  void serve() {
    rank_.recorder.phase_begin("serve");
    step({{0, 0, 100}});
    step({{0, 100, 26}});
    for (std::int64_t p = 126; p < 132; ++p) step({{0, p, 1}, {1, (p - 126) * 50, 50}});
    step({{0, 132, 1}, {1, 300, 1}});
    end();
  }
  void warm_up() {
    rank_.recorder.phase_begin("warmup");
    for (const Batch& batch : rank_.model().covering_batches()) rank_.model().step(batch, false);
    end();
  }

  std::vector<nlohmann::json> checks() const { return rank_.events("check"); }
  /// "tensor/kind" of those that failed; of all.
  std::set<std::string> failed() const { return names(true); }
  std::set<std::string> names(bool only_failed = false) const {
    std::set<std::string> out;
    for (const auto& e : checks()) {
      const bool right = e["error"].is_number() && e["error"] <= e["limit"] &&
                         e["mismatches"] == 0 && e["poisoned"] == 0;
      if (only_failed && right) continue;
      out.insert(e["tensor"].get<std::string>() + "/" + e["layer_kind"].get<std::string>());
    }
    return out;
  }

 private:
  struct Part {
    std::int64_t row, from, count;
  };
  void step(const std::vector<Part>& parts) {
    std::vector<std::vector<std::int64_t>> ids;
    ids.reserve(parts.size());  // the batch looks into them
    Batch batch;
    for (const Part& part : parts) {
      ASSERT_TRUE(rank_.model().grow_request(part.row, part.from + part.count));
      ids.emplace_back();
      for (std::int64_t i = 0; i < part.count; ++i) {
        ids.back().push_back(rank_.model().sample(part.row, part.from + i));
      }
      batch.requests.push_back({part.row, part.from, part.count, ids.back()});
    }
    rank_.model().step(batch, false);
    for (const Part& part : parts) {
      rank_.model().free_window_blocks(part.row, part.from + part.count);
    }
  }
  void end() {
    rank_.model().end_phase();
    rank_.recorder.phase_end("ok");
  }
  testing::Rank rank_;
};

scenario::Resolved config_of(std::vector<std::int64_t> ratios = {1, 4, 128}) {
  return testing::executed(std::move(ratios));
}

TEST(ChecksOnTheEngine, ItPasses) {
  Engine engine(config_of());
  engine.warm_up();
  EXPECT_THAT(engine.failed(), IsEmpty());
  engine.serve();
  EXPECT_THAT(engine.failed(), IsEmpty());
  std::set<std::string> wanted = {"embedding/",
                                  "logit_rows/",
                                  "final_norm/",
                                  "lm_head/",
                                  "argmax/",
                                  "rope_table/swaonly",
                                  "rope_table/c4a",
                                  "topk/c4a",
                                  "indexer_key/c4a",
                                  "indexer_query/c4a",
                                  "indexer_state/c4a",
                                  "compressed_key/c4a",
                                  "compressed_key/c128a",
                                  "compressor_state/c128a"};
  for (const char* kind : {"swaonly", "c4a", "c128a"}) {
    for (const char* tensor :
         {"layer_input", "attn_norm", "fused_wqa_wkv", "qkv_norm", "wq_b", "query", "window_key",
          "attention", "output_operand", "grouped_projection", "wo_b", "rank_sum", "residual",
          "ffn_norm", "gated_mlp"}) {
      wanted.insert(std::string(tensor) + "/" + kind);
    }
  }
  EXPECT_THAT(engine.names(), IsSupersetOf(wanted));
}

TEST(ChecksOnTheEngine, EveryRowIfWanted) {
  scenario::Resolved config = config_of({1});
  config.checks.numerics = "all";
  Engine engine(config);
  engine.serve_shortly();
  EXPECT_THAT(engine.failed(), IsEmpty());
  for (const auto& e : engine.checks()) {
    if (e["tensor"] == "window_key") {
      EXPECT_EQ(e["rows"], 11);  // tokens of all steps
    }
  }
}

TEST(ChecksOnTheEngine, NothingWhereOffOrNotExecuted) {
  scenario::Resolved off = config_of({1}), accounting = config_of({1});
  off.checks.numerics = "off";
  accounting.device = std::string(accounting_device().name());
  for (const auto& config : {off, accounting}) {
    Engine engine(config);
    engine.serve_shortly();
    EXPECT_THAT(engine.checks(), IsEmpty()) << config.device;
  }
}

struct Wrong {
  const char *seam, *value, *caught;
};
class WrongSeams : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongSeams, AreCaughtByTheTensorTheySpoil) {
  scenario::Resolved config = config_of();
  ASSERT_EQ(config.seams.count(GetParam().seam), 1u);
  config.seams[GetParam().seam] = GetParam().value;
  Engine engine(config);
  engine.serve();
  EXPECT_THAT(engine.failed(), Contains(GetParam().caught));
  // What comes before it in a layer is not blamed.
  EXPECT_THAT(engine.failed(), Not(Contains("fused_wqa_wkv/swaonly")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongSeams,
    ::testing::Values(Wrong{"attention.topk_length", "ignored", "attention/c4a"},
                      Wrong{"attention.window_padding", "counted", "attention/swaonly"},
                      Wrong{"rope.window_layers", "plain", "rope_table/swaonly"}));

TEST(ChecksOnTheEngine, TheReferenceOfWindowLayersMayBePlain) {
  scenario::Resolved config = config_of({1});
  config.checks.rope_reference = "plain";
  Engine yarn(config);
  yarn.serve();
  EXPECT_THAT(yarn.failed(), Contains("rope_table/swaonly"));
  config.seams["rope.window_layers"] = "plain";
  Engine plain(config);
  plain.serve();
  EXPECT_THAT(plain.failed(), IsEmpty());
}

}  // namespace
}  // namespace warmgate::engine
