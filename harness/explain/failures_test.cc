#include "harness/explain/failures.h"

#include <fmt/format.h>

#include "harness/explain/test_logs.h"

namespace warmgate::explain {
namespace {

#define NEEDS_RE2() \
  if (!available()) GTEST_SKIP() << availability()

std::string type_of(const std::string& type, const std::string& message) {
  internal::Failure failure;
  failure.type = type;
  (type.empty() ? failure.text : failure.message) = message;
  return internal::fingerprint_type(failure, internal::Grammar());
}

TEST(FingerprintType, AnAsideEndsItAndACallDoesNot) {
  EXPECT_EQ(type_of("TypeError", "forward() got an unexpected keyword argument 'x'"),
            "TypeError: forward() got an unexpected keyword argument");
  EXPECT_EQ(type_of("RuntimeError", "ncclCommInitRank(comm) failed"),
            "RuntimeError: ncclCommInitRank(comm) failed");
  EXPECT_EQ(type_of("ValueError", "the length 12 (of 8) is too much"),
            "ValueError: the length <r>");
  EXPECT_EQ(type_of("ValueError", "(1, 2)"), "ValueError");
  // Wherever it is cut, it does not end with what the rest would have closed.
  for (int filler = 60; filler < 90; ++filler) {
    for (const char* open : {"(", "f(", " [", "{", ": ", "x=", "<"}) {
      const std::string message = std::string(static_cast<std::size_t>(filler), 'm') + open + "1)";
      for (const char* type : {"", "ValueError"}) {
        const std::string cut = type_of(type, message);
        const std::string end = cut.ends_with("…") ? cut.substr(0, cut.size() - 3) : cut;
        EXPECT_EQ(end.find_last_of("([{:=< ") + 1 == end.size(), false) << cut;
        EXPECT_FALSE(end.ends_with("<r")) << cut;
      }
    }
  }
}

const std::string& served() {
  static const std::string text =
      sample("07-sglang-healthy-tp2") +
      "[2025-11-30 13:01:00 TP0] Decode batch. #running-req: 1, #token: 12, token usage: 0.00\n";
  return text;
}

TEST(Hangs, AfterReadyAreInService) {
  NEEDS_RE2();
  const std::string watchdog =
      "[2025-11-30 13:10:00 TP1] Watchdog timeout (self.watchdog_timeout=300)\n";
  for (const std::string& text : {served(), sample("07-sglang-healthy-tp2")}) {
    const Reading reading = read_log(text + watchdog);
    EXPECT_EQ(reading.outcome, "hung");
    EXPECT_EQ(reading.failing_phase, "serve");
    EXPECT_EQ(reading.last_phase, "serve");
  }
  // Before it is ready, it is the phase that it stands in.
  const std::string whole = sample("07-sglang-healthy-tp2");
  const std::size_t capture = whole.find("Capture cuda graph begin");
  ASSERT_NE(capture, std::string::npos);
  const Reading early = read_log(whole.substr(0, whole.rfind('\n', capture) + 1) + watchdog);
  EXPECT_EQ(early.outcome, "hung");
  EXPECT_NE(early.failing_phase, "serve");
}

std::string stack(const std::string& who, const std::string& function) {
  return who + " 0x00007f0000000000 (most recent call first):\n  File \"/x/vllm/" + function +
         ".py\", line 12 in " + function + "\n  File \"/x/vllm/core.py\", line 1 in run\n\n";
}

TEST(Faults, TheStackBelongsToTheFirstLineThatTellsOfIt) {
  NEEDS_RE2();
  const std::string head =
      "INFO 11-30 15:00:00 [api_server.py:100] vLLM API server version 0.11.0\n";
  const std::string signal = "!!!!!!! Segfault encountered !!!!!!!\n",
                    python = "Fatal Python error: Segmentation fault\n\n";
  const std::string threads = stack("Thread", "waits") + stack("Current thread", "falls");
  for (const std::string& lines :
       {signal + python + stack("Current thread", "falls"), python + threads,
        signal + python + threads, python + signal + threads, signal + threads}) {
    const Reading reading = read_log(head + lines);
    ASSERT_TRUE(reading.fingerprint) << lines;
    EXPECT_EQ(reading.fingerprint->type.substr(0, 18), "Fatal Python error") << lines;
    EXPECT_EQ(reading.fingerprint->function, "falls") << lines;
    EXPECT_EQ(reading.fingerprint->file, "falls.py") << lines;
  }
}

TEST(Ray, ALineStandsForAllThatSaidIt) {
  NEEDS_RE2();
  const auto line = [](int rank, const std::string& text) {
    return fmt::format("(RayWorkerWrapper rank={} pid={}) INFO 07-02 09:00:0{} [x.py:1] {}\n", rank,
                       40 + rank, rank, text);
  };
  const std::string skip = "Skipping FlashInfer autotune because it is disabled.";
  const std::string head =
      "INFO 07-02 09:00:00 [api_server.py:100] vLLM API server version 0.11.0\n";
  const Reading reading =
      read_log(head + line(0, skip) + line(3, skip + " [repeated 3x across cluster]"));
  EXPECT_EQ(reading.figures.at("skips"), 4);
  EXPECT_EQ(reading.moment_counts.at("skip"), 4);
  // Of milestones that others passed without being named nobody can be said to lack them.
  const std::string loaded = "Model loading took 7.1250 GB and 9.310224 seconds";
  const std::string wait = "INFO 07-02 09:10:00 [shm_broadcast.py:430] No available block\n";
  std::string before;
  for (int rank = 0; rank < 4; ++rank) before += line(rank, "Starting to load model x...");
  Ending ending;
  ending.deadline = true;
  const auto missing = [&](const std::string& text) {
    return read_log(head + before + text + wait, 0, ending).failing_worker;
  };
  EXPECT_EQ(missing(line(0, loaded) + line(1, loaded) + line(2, loaded)), "rank=3");
  EXPECT_EQ(missing(line(0, loaded) + line(2, loaded + " [repeated 3x across cluster]")),
            std::nullopt);
}

TEST(Grammars, WithoutAnyNothingHasAPlace) {
  const Grammars none;
  EXPECT_TRUE(none.engines().empty());
  Reader reader(none);
  const int source = reader.add_source("log");
  reader.feed(source, "(Worker pid=1) INFO 07-02 09:00:01 [x.py:1] hello\nValueError: x\n");
  const Reading reading = reader.finish();
  EXPECT_EQ(reading.engine, "");
  EXPECT_EQ(reading.unplaced, 2);
  Grammars moved = Grammars(none), other = std::move(moved);
  EXPECT_TRUE(moved.engines().empty());  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace warmgate::explain
