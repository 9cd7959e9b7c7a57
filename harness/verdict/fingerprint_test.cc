#include "harness/verdict/fingerprint.h"

#include <gtest/gtest.h>

#include "harness/verdict/mask.h"
#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using contract::testing::TraceBuilder;

TEST(Mask, NumbersAddressesPathsButNotNames) {
  EXPECT_EQ(mask("pid 4711 at 0x7fffABC in /opt/vllm/flashmla.py:99"),
            "pid # at 0x# in flashmla.py:#");
  EXPECT_EQ(mask("c128a sm_90a forward_v2 2nd 1,024 3.5"), "c128a sm_90a forward_v2 2nd # #");
  EXPECT_EQ(mask("a/b and/or /x"), "a/b and/or /x");
  EXPECT_EQ(mask("/"), "/");
  EXPECT_EQ(mask(""), "");
  EXPECT_EQ(mask("0x"), "0x");
}

RunRecord crash(const std::string& message, int layer, int rank, const nlohmann::json& stack) {
  TraceBuilder t(2);
  t.hello(rank).begin("profile", rank);
  t.fault("AssertionError", message, rank,
          {{"function", "forward_mqa"},
           {"file", "/a/b/flashmla.py"},
           {"line", 99 + layer},
           {"layer", layer},
           {"stack", stack}});
  t.exited(rank, 1);
  RunRecord r;
  r.trace = t;
  r.contracts = {broken("starts", {"x"}), broken("owned-resources", {"topk_indices_buffer"})};
  RunFacts facts;
  facts.workers = {worker(1, 0, rank)};
  classify(facts, contract::View(r.trace), r);
  return r;
}

TEST(Fingerprint, LayerRankAndLineAreNoPartOfIt) {
  const auto a = make_fingerprint(crash("layer 43", 43, 0, nlohmann::json::array()));
  const auto b = make_fingerprint(crash("layer 7", 7, 1, nlohmann::json::array()));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->id(), b->id());
  EXPECT_EQ(a->id().size(), 12u);
  EXPECT_EQ(a->to_json(),
            (nlohmann::json{{"phase", "profile"},
                            {"kind", "exception"},
                            {"type", "AssertionError"},
                            {"contract", "owned-resources"},
                            {"frames", {{{"function", "forward_mqa"}, {"file", "flashmla.py"}}}}}));
  EXPECT_TRUE(same(*a, *b));
}

TEST(Fingerprint, FramesWithoutTheOnesEveryCrashHas) {
  const auto f = make_fingerprint(crash("m", 1, 0,
                                        {{{"function", "abort"}},
                                         "__assert_fail (x.c:3)",
                                         "step (/r/run.py:5)",
                                         {{"function", "loop"}, {"file", "core.py"}},
                                         7,
                                         nullptr,
                                         "deep (d.py:1)"}));
  ASSERT_TRUE(f);
  ASSERT_EQ(f->frames.size(), 3u);
  EXPECT_EQ(f->frames[1].function, "step");
  EXPECT_EQ(f->frames[1].file, "run.py");
  EXPECT_EQ(f->frames[2].function, "loop");
}

TEST(Fingerprint, OfABrokenContract) {
  RunRecord r = run(Outcome::kFailed);
  r.phase = "warmup";
  r.contracts = {kept("protocol"), broken("keys-valid", {"K{R=0,W=1}", "K{R=0,W=2}", "L{}"})};
  r.contracts[1].findings[0].layer_kind = r.contracts[1].findings[1].layer_kind = "c4a";
  const auto f = make_fingerprint(r);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->kind, "contract");
  EXPECT_EQ(f->contract, "keys-valid");
  ASSERT_EQ(f->frames.size(), 2u);  // the two K are one
  EXPECT_EQ(f->frames[0].function, "K");
  EXPECT_EQ(f->frames[0].file, "c4a");
}

TEST(Fingerprint, SignalsExitsAndHangs) {
  RunRecord r = run(Outcome::kCrashed);
  r.kind = "signal";
  r.signal_name = "SIGSEGV";
  EXPECT_EQ(make_fingerprint(r)->type, "SIGSEGV");
  r.signal_name = "";
  r.exit_code = 3;
  EXPECT_EQ(make_fingerprint(r)->type, "exit 3");
  r = run(Outcome::kHung);
  r.kind = "silence";
  EXPECT_EQ(make_fingerprint(r)->kind, "deadline");
  EXPECT_EQ(make_fingerprint(r)->type, "silence");
}

TEST(Fingerprint, NoneOfWhatDidNotFail) {
  for (Outcome o : {Outcome::kPassed, Outcome::kIncomplete, Outcome::kSkipped, Outcome::kInfra})
    EXPECT_FALSE(make_fingerprint(run(o)));
}

Fingerprint with(std::vector<std::string> functions, const std::string& phase = "load") {
  Fingerprint f;
  f.phase = phase;
  for (auto& name : functions) f.frames.push_back({name, "f.py"});
  return f;
}

TEST(Same, EqualOrTwoFramesInOrder) {
  EXPECT_TRUE(same(with({}), with({})));
  EXPECT_FALSE(same(with({}), with({}, "kv")));
  EXPECT_FALSE(same(with({"a"}), with({"a"}, "kv")));
  EXPECT_TRUE(same(with({"a", "b"}), with({"a", "b"}, "kv")));
  EXPECT_TRUE(same(with({"a", "x", "b"}), with({"a", "b", "y"})));
  EXPECT_FALSE(same(with({"a", "b"}), with({"b", "a"})));  // not in order
  EXPECT_FALSE(same(with({"a", "b", "c"}), with({"c", "x", "y"})));
}

}  // namespace
}  // namespace warmgate::verdict
