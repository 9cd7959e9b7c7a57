// The parts without processes: clock, environment record, events folder, evidence.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "harness/target/environment.h"
#include "harness/target/events_dir.h"
#include "harness/target/evidence.h"
#include "harness/target/launch.h"
#include "harness/target/mask.h"
#include "harness/target/phase_clock.h"
#include "harness/target/test_support.h"

namespace warmgate::target::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const PhaseClock::Time kStart{};

Deadlines limits() {
  Deadlines limits;
  limits.default_phase_s = 10;
  limits.phase_s["load"] = 5;
  limits.silence_s = 100;
  limits.total_s = 1000;
  return limits;
}

TEST(PhaseClock, EachPhaseHasItsDeadline) {
  PhaseClock clock(limits(), {}, kStart);
  clock.begin("rank0", 0, "load", kStart + 1s);
  EXPECT_FALSE(clock.expired(kStart + 5999ms));
  const auto expiry = clock.expired(kStart + 6s);
  ASSERT_TRUE(expiry);
  EXPECT_EQ(expiry->kind, "deadline");
  EXPECT_EQ(expiry->phase, "load");
  EXPECT_EQ(expiry->rank, 0);
  EXPECT_EQ(clock.next(), kStart + 6s);
}

TEST(PhaseClock, BeginningAgainDoesNotBuyTime) {
  PhaseClock clock(limits(), {}, kStart);
  clock.begin("rank0", 0, "load", kStart);
  clock.begin("rank0", 0, "load", kStart + 4s);
  EXPECT_TRUE(clock.expired(kStart + 5s));
}

TEST(PhaseClock, BetweenPhasesTheDefaultCounts) {
  PhaseClock clock(limits(), {}, kStart);
  EXPECT_TRUE(clock.expired(kStart + 10s)) << "nobody ever began one";
  clock.begin("rank0", 0, "load", kStart + 3s);
  clock.end("rank0", "profile", kStart + 4s);  // not the one that runs
  clock.end("rank0", "load", kStart + 4s);
  EXPECT_FALSE(clock.expired(kStart + 13s));
  const auto expiry = clock.expired(kStart + 14s);
  ASSERT_TRUE(expiry);
  EXPECT_EQ(expiry->phase, "load") << "the last one";
  EXPECT_EQ(expiry->rank, -1);
}

TEST(PhaseClock, AFrontEndWithoutPhasesIsNotHeldAgainstItsCore) {
  PhaseClock clock(limits(), {}, kStart);
  clock.begin("core.1.jsonl", 0, "warmup", kStart + 9s);
  EXPECT_FALSE(clock.expired(kStart + 18s));
  EXPECT_TRUE(clock.expired(kStart + 19s));
  clock.gone("core.1.jsonl", kStart + 18s);
  EXPECT_FALSE(clock.expired(kStart + 27s));
}

TEST(PhaseClock, SilenceScaleAndTotal) {
  Deadlines quick = limits();
  quick.silence_s = 2;
  quick.scale = 2;
  quick.total_s = 6;
  PhaseClock clock(quick, {}, kStart);
  EXPECT_FALSE(clock.expired(kStart + 3s));
  EXPECT_EQ(clock.expired(kStart + 4s)->kind, "silence");
  clock.heard(kStart + 3s);
  EXPECT_FALSE(clock.expired(kStart + 5999ms));
  EXPECT_EQ(clock.expired(kStart + 6s)->kind, "deadline") << "the total is not scaled";
}

TEST(PhaseClock, CirclesAreBoundWithoutATotal) {
  Deadlines plain = limits();
  plain.total_s.reset();
  PhaseClock clock(plain, {"load", "kv"}, kStart);
  for (int i = 0; i < 49; ++i) {
    clock.heard(kStart + i * 1s);
    clock.begin("rank0", 0, i % 2 == 0 ? "load" : "kv", kStart + i * 1s);
  }
  EXPECT_FALSE(clock.expired(kStart + 49s));
  EXPECT_TRUE(clock.expired(kStart + 50s)) << "2 x (10 + 5 + 10)";
}

TEST(Environment, RecordsThisMachine) {
  const nlohmann::json record = environment_record({});
  EXPECT_EQ(record["schema"], "environment/1.0");
  EXPECT_GE(record["cores"], 1);
  EXPECT_GT(record["memory_bytes"], 1 << 20);
  EXPECT_EQ(record["fingerprint"].get<std::string>().size(), 12u);
  EXPECT_EQ(record["fingerprint"], environment_record({})["fingerprint"]);
}

TEST(Environment, MasksByNameAndByValue) {
  const char* env[] = {"HF_TOKEN=hf_abcdefgh",
                       "VLLM_ARGS=--token hf_abcdefgh",
                       "VLLM_API_KEY=abc",
                       "HTTPS_PROXY=http://u:pa55word@host",
                       "UNRELATED=1",
                       "CUDA_VISIBLE_DEVICES=0",
                       "HOME=/home/hf_abcdefgh",
                       nullptr};
  const nlohmann::json record = environment_record(collect_secrets(env), "/no/such/root", env);
  const std::string text = record.dump();
  EXPECT_THAT(text, Not(HasSubstr("hf_abcdefgh")));
  EXPECT_THAT(text, Not(HasSubstr("pa55word")));
  EXPECT_EQ(record["variables"]["VLLM_API_KEY"], "[secret]") << "too short to mask by value";
  EXPECT_EQ(record["variables"]["VLLM_ARGS"], "--token [secret]");
  EXPECT_EQ(record["variables"]["CUDA_VISIBLE_DEVICES"], "0");
  EXPECT_FALSE(record["variables"].contains("UNRELATED"));
  EXPECT_TRUE(record["driver"].is_null());
  EXPECT_TRUE(record["cuda"]["toolkit"].is_null());
}

TEST(Environment, ReadsWhatADriverShows) {
  const TempDir root;
  fs::create_directories(root.path() / "proc/driver/nvidia/gpus/0000:01:00.0");
  std::ofstream(root.path() / "proc/driver/nvidia/version") << "NVRM version: 999.1\nrest\n";
  std::ofstream(root.path() / "proc/driver/nvidia/gpus/0000:01:00.0/information")
      << "Model: \t\t NVIDIA X\nGPU UUID: \t GPU-1\n";
  fs::create_directories(root.path() / "usr/local/cuda/lib64");
  std::ofstream(root.path() / "usr/local/cuda/lib64/libnvrtc.so.13") << "";
  const char* env[] = {nullptr};
  const nlohmann::json record = environment_record({}, root.path(), env);
  EXPECT_EQ(record["driver"], "NVRM version: 999.1");
  EXPECT_EQ(record["gpus"][0]["name"], "NVIDIA X");
  EXPECT_EQ(record["gpus"][0]["uuid"], "GPU-1");
  EXPECT_THAT(record["cuda"]["nvrtc"].get<std::string>(), HasSubstr("libnvrtc.so.13"));
}

TEST(EventsDir, ReadsOnlyPlainFiles) {
  const TempDir dir;
  trace::Trace trace;
  const std::vector<std::string> none;
  EventsDir events(dir.path(), trace, none);
  ASSERT_EQ(::mkfifo((dir.path() / "pipe.jsonl").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", dir.path() / "link.jsonl");
  std::ofstream(dir.path() / "note.txt") << "no events";
  std::ofstream file(dir.path() / "h.1.2.jsonl");
  file << "{\"ev\":\"heartbeat\",\"t\":1}\n{\"ev\":\"hea" << std::flush;
  EXPECT_TRUE(events.poll());
  EXPECT_EQ(trace.events.size(), 1u);
  file << "rtbeat\",\"t\":2}\n{\"half" << std::flush;
  EXPECT_TRUE(events.poll());
  EXPECT_FALSE(events.poll()) << "nothing new";
  EXPECT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[1].source, "h.1.2.jsonl");
  events.finish();
  EXPECT_EQ(trace.bad_lines.size(), 1u);
}

TEST(EventsDir, RecordsThatAreWrittenInPlaceAreReadAtTheEndAndHalfOnesAreNobodysMistake) {
  const TempDir dir;
  trace::Trace trace;
  const std::vector<std::string> secrets = {"hunter2hunter2"};
  EventsDir events(dir.path(), trace, secrets);
  const std::string nothing(640, '\0');
  std::ofstream file(dir.path() / "h.1.2.last");
  file << nothing << "{\"ev\":\"heartbeat\",\"t\":1}      \n{\"ev\":\"heartb\n"
       << nothing << "{\"ev\":\"heartbeat\",\"t\":2}\n"
       << nothing << std::flush;
  fs::create_symlink("/dev/zero", dir.path() / "link.last");
  events.poll();
  EXPECT_TRUE(trace.events.empty()) << "it may still change";
  EXPECT_FALSE(events.saw_secret());
  file << "hunter2hunter2\n" << std::flush;
  events.finish();
  EXPECT_TRUE(trace.bad_lines.empty());
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[1].t_ns, 2);
  EXPECT_EQ(trace.events[1].source, "h.1.2.last");
  EXPECT_TRUE(events.saw_secret());
}

TEST(EventsDir, ManyFilesAreBound) {
  const TempDir dir;
  trace::Trace trace;
  const std::vector<std::string> none;
  EventsDir events(dir.path(), trace, none);
  for (std::size_t i = 0; i < EventsDir::kMaxFiles + 3; ++i) {
    std::ofstream(dir.path() / (std::to_string(i) + ".jsonl"))
        << "{\"ev\":\"heartbeat\",\"t\":1}\n";
  }
  events.poll();
  events.poll();
  events.finish();
  EXPECT_EQ(trace.events.size(), EventsDir::kMaxFiles);
  EXPECT_EQ(trace.bad_lines.size(), 1u);
}

TEST(Evidence, LackOfMemory) {
  EXPECT_TRUE(says_out_of_memory("torch.OutOfMemoryError: CUDA out of memory"));
  EXPECT_TRUE(says_out_of_memory("  what():  std::bad_alloc"));
  EXPECT_FALSE(says_out_of_memory("memory is fine"));
  verdict::WorkerEnd end;
  end.signal = 9;
  const trace::Trace nothing;
  EXPECT_EQ(oom_evidence(end, "rank0", nothing, {}, false), "");
  EXPECT_THAT(oom_evidence(end, "rank0", nothing, {}, true), HasSubstr("oom_kill"));
  end.killed_by_us = true;
  EXPECT_EQ(oom_evidence(end, "rank0", nothing, {}, true), "");
  end = {};
  end.exited = true;
  end.exit_code = 1;
  trace::Trace trace;
  trace.events.push_back(
      trace::harness_event("fault", {{"type", "MemoryError"}, {"message", "x"}}, 0));
  EXPECT_EQ(oom_evidence(end, "rank0", trace, {}, false), "fault MemoryError: x");
  trace.events.push_back(
      trace::harness_event("fault", {{"type", "KeyError"}, {"message", "y"}}, 0));
  EXPECT_EQ(oom_evidence(end, "rank0", trace, {}, false), "") << "its last words were others";
}

TEST(FindProgram, LooksInThePathGiven) {
  EXPECT_EQ(find_program("sh", "/no/such:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("./x", "/bin"), "./x");
  EXPECT_EQ(find_program("no-such-thing", "/bin"), "no-such-thing");
  EXPECT_EQ(find_program("tmp", "/"), "tmp") << "a folder is no program";
}

TEST(Process, NamesWithParenthesesAreRead) {
  ProcessInfo info;
  ASSERT_TRUE(read_process(::getpid(), info, true));
  EXPECT_EQ(info.parent, ::getppid());
  EXPECT_EQ(info.group, ::getpgrp());
  EXPECT_FALSE(read_process(-1, info));
}

}  // namespace
}  // namespace warmgate::target::testing
