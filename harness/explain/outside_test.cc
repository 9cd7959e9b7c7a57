#include "harness/explain/outside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/explain/answer.h"
#include "harness/scenario/files.h"
#include "harness/scenario/test_files.h"

namespace warmgate::explain {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class OutsideTest : public scenario::TestFiles {
 protected:
  static const OutsideRules& rules() {
    static const OutsideRules all = [] {
      OutsideRules out;
      scenario::Problems problems;
      out.read_folder(source() / "fixtures" / "outside", problems);
      problems.throw_if_any();
      return out;
    }();
    return all;
  }
  static std::string first(const Reading& reading, const Ending& ending = {}) {
    const auto found = rules().find(reading, ending);
    if (found.empty()) return "";
    return found.front().rule->name + (found.front().after_failure ? " (after)" : "");
  }
  static Reading crashed(const std::string& message, const std::string& function = "f") {
    Reading out;
    out.engine = "vllm";
    out.outcome = "crashed";
    out.failing_phase = out.last_phase = "load";
    out.fingerprint = Fingerprint{message.substr(0, message.find(':')), function, "x.py"};
    out.message = message;
    out.moments.push_back(moment("cause", 10, message));
    return out;
  }
  static Moment moment(const char* sort, std::int64_t line, const std::string& text) {
    Moment out;
    out.sort = sort;
    out.line = line;
    out.text = text;
    return out;
  }
  Answer answer(const Reading& reading, const Ending& ending = {}) {
    return answer_of(reading, ending, rules(), known_);
  }
  KnownSet known_;
};

TEST_F(OutsideTest, TheRootExceptionSaysIt) {
  EXPECT_EQ(first(crashed("OSError: [Errno 98] Address already in use")), "port-busy");
  EXPECT_EQ(first(crashed("OSError: [Errno 28] No space left on device: '/tmp/x'")), "disk-full");
  EXPECT_EQ(first(crashed("RuntimeError: CUDA driver version is insufficient for CUDA runtime "
                          "version")),
            "driver-mismatch");
  EXPECT_EQ(first(crashed("ValueError: Free memory on device cuda:0 (3.2/79.1 GiB) on startup is "
                          "less than desired GPU memory utilization (0.9, 71.2 GiB).")),
            "gpu-memory-held");
  EXPECT_EQ(first(crashed("AssertionError: Error in memory profiling. Initial free memory 82.94 "
                          "GiB, current free memory 90.17 GiB.")),
            "gpu-memory-moved");
  EXPECT_EQ(first(crashed("torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled "
                          "system error (run with NCCL_DEBUG=INFO for details)")),
            "nccl-network");
  EXPECT_EQ(first(crashed("RuntimeError: No CUDA GPUs are available")), "no-gpu");
}

TEST_F(OutsideTest, FaultsOfTheEngineAreNone) {
  for (const char* message :
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 150.00 MiB.",
        "ValueError: To serve at least one request with the model's max seq len (131072)",
        "RuntimeError: NCCL error: unhandled cuda error", "AssertionError",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"})
    EXPECT_EQ(first(crashed(message)), "") << message;
}

TEST_F(OutsideTest, ALineBeforeTheFailureCountsAndOneBehindItDoesNot) {
  Reading reading = crashed("AssertionError: x");
  reading.moments.push_back(moment("outside", 20, "Received SIGTERM, shutting down"));
  EXPECT_EQ(first(reading), "signal-terminate (after)");
  EXPECT_EQ(answer(reading).kind, Answer::Kind::kMine);
  reading.moments.back().line = 5;
  EXPECT_EQ(first(reading), "signal-terminate");
  const Answer found = answer(reading);
  EXPECT_EQ(found.kind, Answer::Kind::kInfrastructure);
  EXPECT_TRUE(found.certain);
}

TEST_F(OutsideTest, WordsThatOnlyOneThingSaysMayStandAnywhere) {
  Reading reading;
  reading.engine = "vllm";
  reading.last_phase = "load";
  reading.unplaced_lines.push_back(
      {0, 3, "kernel: Out of memory: Killed process 4711 (python3) total-vm:1kB"});
  EXPECT_EQ(first(reading), "oom-killer");
  EXPECT_EQ(answer(reading).kind, Answer::Kind::kInfrastructure);
  // A word like Terminated has to be recognised as a line of its own by the grammar.
  reading.unplaced_lines = {{0, 3, "Terminated"}};
  EXPECT_EQ(first(reading), "");
}

TEST_F(OutsideTest, HowItEndedSpeaksOnlyWhereTheLogDoesNot) {
  Reading reading;
  reading.engine = "vllm";
  reading.outcome = "crashed";
  Ending ending;
  ending.signal = 9;
  EXPECT_EQ(first(reading, ending), "signal-kill");
  EXPECT_FALSE(answer(reading, ending).certain);
  EXPECT_EQ(first(crashed("AssertionError: x"), ending), "");
}

TEST_F(OutsideTest, AStartThatPassedHasNoCause) {
  Reading reading;
  reading.outcome = "passed";
  reading.moments.push_back(moment("outside", 20, "Received SIGTERM, shutting down"));
  EXPECT_EQ(answer(reading).kind, Answer::Kind::kStarts);
}

TEST_F(OutsideTest, AnswersWithoutAnyCause) {
  Reading reading;
  EXPECT_EQ(answer(reading).kind, Answer::Kind::kIncomplete);
  reading.outcome = "hung";
  reading.failing_phase = "warmup";
  reading.silence = Silence{120, 5, 0, "x", "", {}};
  const Answer hung = answer(reading);
  EXPECT_EQ(hung.kind, Answer::Kind::kUnclear);
  EXPECT_THAT(hung.reason, HasSubstr("in warmup for 120 s"));
  reading.outcome = "failed";
  EXPECT_EQ(answer(reading).kind, Answer::Kind::kUnclear);
  const Answer mine = answer(crashed("AssertionError: x", "forward"));
  EXPECT_EQ(mine.kind, Answer::Kind::kMine);
  EXPECT_THAT(mine.reason, HasSubstr("AssertionError in forward (x.py)"));
}

TEST_F(OutsideTest, WhatIsWrongWithAFileIsSaidWithItsPlace) {
  write("o/a.yaml",
        "outside:\n"
        "  - {name: a, certainty: maybe, reason: r, text: x}\n"
        "  - {name: b, certainty: likely, reason: r}\n"
        "  - {name: c, certainty: likely, reason: r, text: '*'}\n"
        "  - {name: d, certainty: likely, reason: r, txet: x}\n"
        "  - {name: e, certainty: likely, reason: r, text: good}\n");
  OutsideRules rules;
  scenario::Problems problems;
  rules.read_folder(folder_ / "o", problems);
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const scenario::ScenarioError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, HasSubstr("a.yaml:2:"));
    EXPECT_THAT(text, HasSubstr("needs `text`, `exit` or `signal`"));
    EXPECT_THAT(text, HasSubstr("matches every line"));
    EXPECT_THAT(text, HasSubstr("txet"));
  }
  // What is right is kept.
  EXPECT_TRUE(std::any_of(rules.rules().begin(), rules.rules().end(),
                          [](const OutsideRule& rule) { return rule.name == "e"; }));
  scenario::Problems missing;
  rules.read_folder(folder_ / "none", missing);
  EXPECT_FALSE(missing.empty());
}

}  // namespace
}  // namespace warmgate::explain
