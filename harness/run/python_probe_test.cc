// The Python plugin through the whole product: a program whose Triton is a false one, its findings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using verdict::Outcome;

const char kTriton[] = R"(
class compilation:
    listener = None
class knobs:
    compilation = compilation
class Times:
    total = 9000
class Kernel:
    __name__, arg_names = "compress", ["x", "RATIO"]
def compile(ratio, hit):
    class Source:
        fn, signature, constants, attrs = Kernel(), {"x": "*fp32", "RATIO": "constexpr"}, {(1,): ratio}, {}
    if compilation.listener:
        compilation.listener(src=Source, metadata={"num_warps": 4}, metadata_group={}, times=Times, cache_hit=hit)
)";

const char kEngine[] = R"(import os, sys
from engine_events import Events
import triton
events = Events("python-probe-test", 0)
with events.phase("warmup"):
    triton.compile(4, hit=False)
events.ready()
with events.phase("serve"):
    events.step(1, 1, 1)
    if "disk" in sys.argv: triton.compile(8, hit=True)
    if "late" in sys.argv: triton.compile(128, hit=False)
    if "dies" in sys.argv: raise LookupError("no such layer: 43")
    if "gone" in sys.argv: os._exit(0)
events.say("bye")
)";

class PythonProbe : public Product {
 protected:
  verdict::RunRecord one(const std::string& word) {
    fs::create_directories(dir_.path() / "triton");
    put("triton/__init__.py", kTriton);
    put("engine.py", kEngine);
    options_.probes = {"python"};
    return run_one(put("s-" + word + ".yaml",
                       "scenario: s\ntarget: {command: {argv: [python3, engine.py, " + word +
                           "], env: {PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: '" +
                           dir_.path().string() + ":" + (source_dir() / "fixtures/probe").string() +
                           "'}}}\n"));
  }
};

TEST_F(PythonProbe, ACompilationAfterReadyIsNamedByItsKey) {
  const verdict::RunRecord run = one("late");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << run.reason;
  EXPECT_THAT(broken(run), ElementsAre("keys-covered"));
  const contract::Result* covered = verdict::find_result(run, "keys-covered");
  ASSERT_NE(covered, nullptr);
  ASSERT_EQ(covered->findings.size(), 1u);
  EXPECT_EQ(covered->findings[0].key, "compress{x=*fp32,RATIO=128,num_warps=4}");
  EXPECT_THAT(covered->why, HasSubstr("launches are not observed"));
  EXPECT_THAT(run.sets.at("compiles_after_ready"),
              ElementsAre("compress{x=*fp32,RATIO=128,num_warps=4}"));
}

TEST_F(PythonProbe, WhatComesOffTheDiskIsNoCompilation) {
  const verdict::RunRecord run = one("disk");
  EXPECT_EQ(run.outcome, Outcome::kPassed) << run.reason;
  EXPECT_THAT(broken(run), IsEmpty());
  EXPECT_EQ(state_of(run, "keys-covered"), "kept");
  EXPECT_EQ(state_of(run, "code-ready"), "not_applicable") << "another probe's";
  EXPECT_EQ(run.figures.count("python_own_ms"), 1u);
}

TEST_F(PythonProbe, AnUncaughtExceptionIsTheCauseWithItsPlace) {
  const verdict::RunRecord run = one("dies");
  EXPECT_EQ(run.outcome, Outcome::kCrashed);
  EXPECT_THAT(run.reason, HasSubstr("LookupError: no such layer: 43"));
  const contract::Result* starts = verdict::find_result(run, "starts");
  ASSERT_NE(starts, nullptr);
  ASSERT_FALSE(starts->findings.empty());
  EXPECT_EQ(starts->findings[0].detail["function"], "<module>");
  EXPECT_THAT(starts->findings[0].detail["file"].get<std::string>(), HasSubstr("engine.py"));
}

TEST_F(PythonProbe, ItOwesTheProtocolNothingButItsHostDoes) {
  const verdict::RunRecord run = one("gone");
  const contract::Result* protocol = verdict::find_result(run, "protocol");
  ASSERT_NE(protocol, nullptr);
  std::vector<std::string> keys;
  for (const contract::Finding& f : protocol->findings) keys.push_back(f.key);
  EXPECT_THAT(keys, ElementsAre("end/serve", "bye"));
  EXPECT_EQ(run.figures.count("python_own_ms"), 0u) << "os._exit leaves no time for that";
}

}  // namespace
}  // namespace warmgate::run::testing
