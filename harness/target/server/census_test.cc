#include "harness/target/server/census.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include "harness/target/test_support.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using testing::TempDir;

void write(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
}

PreparedStore store(const std::string& name, const fs::path& folder) {
  PreparedStore out;
  out.name = name;
  out.folder = folder;
  out.compiled = true;
  return out;
}

class CensusTest : public ::testing::Test {
 protected:
  std::function<void(trace::Event)> emit() {
    return [this](trace::Event e) {
      const std::lock_guard lock(mutex);
      events.push_back(std::move(e));
    };
  }
  CensusOptions options(std::vector<PreparedStore> stores) {
    CensusOptions out;
    out.stores = std::move(stores);
    out.interval_s = 0.005;
    out.max_share = 1;
    return out;
  }
  std::vector<std::string> keys() {
    std::vector<std::string> out;
    for (const auto& e : events) out.push_back(e.str("key"));
    std::sort(out.begin(), out.end());
    return out;
  }
  // A file's time stamp is that of the last tick of the kernel's clock.
  static void past_the_file_clock() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }
  TempDir dir;
  std::mutex mutex;
  std::vector<trace::Event> events;
};

TEST_F(CensusTest, WhatIsThereBeforeReadyIsNotLate) {
  write(dir.path() / "triton/h0/old.cubin");
  Census census(options({store("triton", dir.path() / "triton")}), emit());
  census.start();
  write(dir.path() / "triton/h1/warmed.cubin");
  past_the_file_clock();
  census.ready(trace::now_ns());
  const CensusResult result = census.stop();
  EXPECT_THAT(events, IsEmpty());
  EXPECT_EQ(result.compiled_files, 0u);
  EXPECT_GT(result.polls, 0u);
}

TEST_F(CensusTest, AWarmStoreThatIsMadeAnewWasNotUsed) {
  const auto told = [this](const std::string& asked, int made, bool replaced, int held = 4) {
    events.clear();
    const TempDir own;
    for (int i = 0; i < held; ++i) write(own.path() / fmt::format("h{}/k.cubin", i));
    PreparedStore warm = store("triton", own.path());
    warm.asked = asked;
    warm.files = static_cast<std::uint64_t>(held);
    Census census(options({warm}), emit());
    census.start();
    for (int i = 0; i < made; ++i) {
      const fs::path path = own.path() / fmt::format("h{}/k.cubin", replaced ? i : i + held);
      write(path.string() + ".tmp");
      fs::rename(path.string() + ".tmp", path);
    }
    past_the_file_clock();
    census.ready(trace::now_ns());
    (void)census.stop();
    std::string out;
    for (const auto& e : events) out += e.str("status") + " " + std::to_string(e.num("held"));
    return out;
  };
  EXPECT_EQ(told("warm", 4, true), "rebuilt 4");
  EXPECT_EQ(told("copy:/x", 4, false), "rebuilt 4");
  EXPECT_EQ(told("warm", 3, true), "");     // a part is what a new version of one kernel leaves
  EXPECT_EQ(told("warm", 3, true, 3), "");  // so few may be written at every start
  EXPECT_EQ(told("cold", 4, true), "");
  EXPECT_EQ(told("", 4, true), "");
}

TEST_F(CensusTest, LateFilesAreCompilations) {
  Census census(options({store("triton", dir.path() / "triton")}), emit());
  census.start();
  write(dir.path() / "triton/h1/warmed.cubin");
  past_the_file_clock();
  const std::int64_t ready = trace::now_ns();
  census.ready(ready);
  census.ready(ready + 1'000'000'000'000);  // the first counts
  for (const char* each : {"add.cubin", "add.ptx", "__grp__add.json", "add.lock"})
    write(dir.path() / "triton/h2" / each);
  write(dir.path() / "triton/rank_3_0/h3/mul.cubin");
  write(dir.path() / "triton/tmp.pid_7_ab/mul.cubin");
  write(dir.path() / "triton/kernel.gemm_fp8/kernel.cubin");
  const CensusResult result = census.stop();
  EXPECT_EQ(result.compiled_files, 3u);
  EXPECT_EQ(keys(),
            (std::vector<std::string>{"triton:add", "triton:kernel.gemm_fp8", "triton:mul"}));
  for (const auto& e : events) {
    EXPECT_EQ(e.ev, "compile");
    EXPECT_EQ(e.src, "census");
    EXPECT_EQ(e.str("source"), "compiler");
    EXPECT_EQ(e.str("phase"), "serve");
    EXPECT_GE(e.t_ns, ready);
    EXPECT_LE(e.t_ns, trace::now_ns());
    EXPECT_EQ(e.rank.has_value(), e.str("kernel") == "mul");
    EXPECT_EQ(e.rank.value_or(3), 3);
    trace::parse_event(trace::to_line(e));
  }
}

TEST_F(CensusTest, ALateKernelIsNamedByItsSideFile) {
  Census census(options({store("triton", dir.path() / "triton")}), emit());
  census.start();
  past_the_file_clock();
  census.ready(trace::now_ns());
  fs::create_directories(dir.path() / "triton/h2");
  std::ofstream(dir.path() / "whole")
      << R"({"name": "add_0d1d", "target": {"backend": "cuda", "arch": 90}})";
  fs::rename(dir.path() / "whole", dir.path() / "triton/h2/add.json");
  write(dir.path() / "triton/h2/add.cubin");
  write(dir.path() / "triton/h3/mul.cubin");  // its side file never comes
  const CensusResult result = census.stop();
  EXPECT_EQ(result.compiled_files, 2u);
  EXPECT_EQ(keys(), (std::vector<std::string>{"triton:add_0d1d", "triton:mul"}));
  for (const auto& e : events) EXPECT_EQ(e.str("arch"), e.str("kernel") == "mul" ? "" : "sm_90");
}

TEST_F(CensusTest, WithoutReadyNothingIsLate) {
  Census census(options({store("triton", dir.path() / "triton")}), emit());
  census.start();
  write(dir.path() / "triton/h1/warmed.cubin");
  past_the_file_clock();
  EXPECT_EQ(census.stop().compiled_files, 0u);
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(CensusTest, AStoreOutsideItsFolderIsAFinding) {
  PreparedStore triton = store("triton", dir.path() / "run/triton");
  triton.elsewhere = dir.path() / "home/.triton";
  PreparedStore inductor = store("inductor", dir.path() / "run/inductor");
  inductor.elsewhere = dir.path() / "home/.triton/inductor";  // of its own, though inside
  write(triton.elsewhere / "old");
  Census census(options({triton, inductor}), emit());
  census.start();
  write(triton.elsewhere / "h/new.cubin");
  write(triton.elsewhere / "h/new.json");
  write(triton.elsewhere / "h/new.lock");
  write(inductor.elsewhere / "x.py");
  const CensusResult result = census.stop();
  EXPECT_EQ(result.outside, 3u);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].ev, "store");
  EXPECT_EQ(events[0].str("store"), "triton");
  EXPECT_EQ(events[0].str("status"), "outside");
  EXPECT_EQ(events[0].str("path"), triton.elsewhere.string());
  EXPECT_EQ(events[0].num("files"), 2);
  EXPECT_EQ(events[0].str("example").rfind("h/new.", 0), 0u);
  EXPECT_EQ(events[1].str("store"), "inductor");
  EXPECT_EQ(events[1].num("files"), 1);
}

TEST_F(CensusTest, WhereAnotherStoreWasToldToBeIsNotOutside) {
  PreparedStore a = store("a", dir.path() / "run/a");
  a.elsewhere = dir.path() / "shared";
  const PreparedStore b = store("b", dir.path() / "shared");
  Census census(options({a, b}), emit());
  census.start();
  write(dir.path() / "shared/x");
  EXPECT_EQ(census.stop().outside, 0u);
}

TEST_F(CensusTest, StoresThatHoldNoCompilationsOnlyGrow) {
  PreparedStore plans = store("plans", dir.path() / "plans");
  plans.compiled = false;
  Census census(options({plans}), emit());
  census.start();
  census.ready(trace::now_ns());
  write(dir.path() / "plans/p.json");
  EXPECT_EQ(census.stop().compiled_files, 0u);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].str("status"), "grew");
}

TEST_F(CensusTest, WhatIsFetchedWhileItRunsIsSaidWheneverItComes) {
  PreparedStore hub = store("hub", dir.path() / "hub");
  hub.compiled = false;
  hub.downloads = true;
  write(dir.path() / "hub/blobs/old");
  Census census(options({hub}), emit());
  census.start();
  write(dir.path() / "hub/blobs/new");
  std::ofstream(dir.path() / "hub/blobs/marker");
  fs::create_symlink("new", dir.path() / "hub/blobs/link");
  past_the_file_clock();
  census.ready(trace::now_ns());
  EXPECT_EQ(census.stop().compiled_files, 0u);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].str("status"), "downloaded");
  EXPECT_EQ(events[0].num("files"), 1);
  EXPECT_EQ(events[0].str("example"), "blobs/new");
}

TEST_F(CensusTest, EventsAreBounded) {
  CensusOptions few = options({store("triton", dir.path() / "triton")});
  few.max_events = 3;
  Census census(few, emit());
  census.start();
  census.ready(trace::now_ns());
  for (int i = 0; i < 20; ++i) write(dir.path() / "triton" / ("k" + std::to_string(i)));
  const CensusResult result = census.stop();
  EXPECT_EQ(events.size(), 3u);
  EXPECT_EQ(result.compiled_files, 20u);
  EXPECT_EQ(result.dropped, 17u);
}

TEST_F(CensusTest, ALargeStoreIsWatchedAsFarAsAllowedAndThatIsSaid) {
  for (int i = 0; i < 200; ++i)
    write(dir.path() / "triton" / std::to_string(i % 10) / std::to_string(i));
  CensusOptions small = options({store("triton", dir.path() / "triton")});
  small.max_files = 100;
  Census census(small, emit());
  census.start();
  EXPECT_THAT(census.stop().cut, ::testing::ElementsAre((dir.path() / "triton").string()));
}

TEST_F(CensusTest, CompilersBeforeAndAfterReady) {
  const fs::path script = dir.path() / "ptxas";
  std::ofstream(script) << "#!/bin/sh\nkill -STOP $$\n";
  fs::permissions(script, fs::perms::owner_all);
  std::vector<pid_t> pids;
  const auto compile = [&](std::string input) {
    std::string path = script, arch = "-arch=sm_90a";
    char* argv[] = {path.data(), arch.data(), input.data(), nullptr};
    char* env[] = {nullptr};
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, path.c_str(), nullptr, nullptr, argv, env), 0);
    pids.push_back(pid);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  };
  Census census(options({}), emit());
  census.add_root(::getpid(), 1);
  census.start();
  compile("early.cu");
  const std::int64_t ready = trace::now_ns();
  census.ready(ready);
  compile("late.cu");  // at once: within one tick of the clock
  const CensusResult result = census.stop();
  for (const pid_t pid : pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  EXPECT_EQ(result.compilers_before, 1u);
  EXPECT_EQ(result.compilers, 1u);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].str("key"), "ptxas:late");
  EXPECT_EQ(events[0].str("arch"), "sm_90a");
  EXPECT_EQ(events[0].rank, 1);
  EXPECT_GE(events[0].t_ns, ready);
  EXPECT_GT(events[0].res_ns, 0);
}

TEST_F(CensusTest, StoppedTwiceOrNeverStarted) {
  Census never(options({store("triton", dir.path() / "triton")}), emit());
  EXPECT_EQ(never.stop().polls, 0u);
  Census twice(options({store("triton", dir.path() / "triton")}), emit());
  twice.start();
  twice.start();
  const CensusResult first = twice.stop();
  EXPECT_EQ(twice.stop().polls, first.polls);
}

}  // namespace
}  // namespace warmgate::target
