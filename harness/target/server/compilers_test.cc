#include "harness/target/server/compilers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "harness/target/test_support.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using testing::TempDir;

TEST(Compilers, ByName) {
  for (const char* name : {"nvcc", "/usr/local/cuda/bin/ptxas", "cudafe++", "g++", "g++-12",
                           "x86_64-linux-gnu-g++-12", "clang++-18", "ld.lld", "ld", "cc1plus",
                           "/opt/x/ninja", "tritoncc", "aarch64-linux-gnu-ld.bfd"}) {
    EXPECT_NE(compiler_name(name), "") << name;
  }
  for (const char* name : {"", "/", "python3", "sh", "ldconfig", "gccgo-helper", "my-g++",
                           "nvcc.sh", "ninjas", "-12", "vllm", "ld-linux-x86-64.so.2", "as-is"}) {
    EXPECT_EQ(compiler_name(name), "") << name;
  }
  EXPECT_EQ(compiler_name("x86_64-linux-gnu-g++-12"), "g++");
}

TEST(Compilers, WhatTheyMake) {
  using V = std::vector<std::string>;
  EXPECT_EQ(compiled_name(V{"nvcc", "-c", "-o", "x/gemm.o", "src/gemm_sm90.cu", "-O3"}),
            "gemm_sm90");
  EXPECT_EQ(compiled_name(V{"ninja", "-v", "-C", "/c/flashinfer/batch_decode/", "-f", "b.ninja"}),
            "batch_decode");
  EXPECT_EQ(compiled_name(V{"ptxas", "-lineinfo", "--gpu-name=sm_90a", "/tmp/tmpa3k_2x9q.ptx", "-o",
                            "/tmp/tmpa3k_2x9q.ptx.o"}),
            "temporary");
  EXPECT_EQ(compiled_name(V{"cicc", "/tmp/tmpxft_000012_00000000-7_k.cpp1.ii"}), "temporary");
  EXPECT_EQ(compiled_name(V{"ld", "-shared", "-o", "out/launcher.so", "/tmp/ccAbCdEf.o"}),
            "launcher");
  EXPECT_EQ(compiled_name(V{"gcc"}), "");
  EXPECT_EQ(compiled_name(V{}), "");
  EXPECT_EQ(compiled_name(V{"gcc", "-o"}), "");
}

TEST(Compilers, ForWhichArchitecture) {
  using V = std::vector<std::string>;
  EXPECT_EQ(compiled_arch(V{"nvcc", "-arch=sm_90a", "x.cu"}), "sm_90a");
  EXPECT_EQ(compiled_arch(V{"ptxas", "--gpu-name", "sm_100a"}), "sm_100a");
  EXPECT_EQ(compiled_arch(V{"nvcc", "-gencode=arch=compute_80,code=sm_80"}), "sm_80");
  EXPECT_EQ(compiled_arch(V{"nvcc", "/home/x/sm_90/kernel.cu"}), "");
  EXPECT_EQ(compiled_arch(V{"nvcc", "-DPLASM_X", "sm_"}), "");
}

TEST(Compilers, RanksInTitlesAndPaths) {
  EXPECT_EQ(named_rank("VLLM::Worker_TP3"), 3);
  EXPECT_EQ(named_rank("VLLM::Worker_PP1_TP0_EP0"), 0);
  EXPECT_EQ(named_rank("sglang::scheduler_TP1_EP1"), 1);
  EXPECT_EQ(named_rank("torch_compile_cache/ab12/rank_2_0/backbone/x.py"), 2);
  EXPECT_EQ(named_rank("inductor/rank5/k"), 5);
  for (const char* none :
       {"", "python3", "HTTP2", "rank", "rank_x", "frank3", "rank_999999999999"}) {
    EXPECT_FALSE(named_rank(none).has_value()) << none;
  }
}

TEST(Compilers, CommandsThatWorkElsewhere) {
  using V = std::vector<std::string>;
  for (const V& argv : {V{"docker", "run", "x"}, V{"/usr/bin/podman", "run"},
                        V{"sudo", "-n", "docker", "run"}, V{"env", "A=1", "kubectl", "exec"},
                        V{"timeout", "-k", "5", "10m", "srun", "-N1"}, V{"ssh", "host"}}) {
    EXPECT_FALSE(runs_here(argv)) << argv.back();
  }
  for (const V& argv :
       {V{}, V{"vllm", "serve", "docker"}, V{"env", "A=1", "python3", "docker"},
        V{"apptainer", "exec", "x.sif"}, V{"nice", "-n", "5", "vllm"}, V{"./docker-like"}}) {
    EXPECT_TRUE(runs_here(argv)) << (argv.empty() ? "" : argv.back());
  }
}

class Running : public ::testing::Test {
 protected:
  // Scripts that bear a compiler's name.
  fs::path script(const std::string& name, const std::string& text) {
    const fs::path path = dir.path() / name;
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  pid_t start(std::vector<std::string> words, const char* entry = nullptr) {
    std::vector<char*> argv, env;
    for (std::string& each : words) argv.push_back(each.data());
    argv.push_back(nullptr);
    std::string path = "PATH=/usr/bin:/bin", own = entry != nullptr ? entry : "A=1";
    env = {path.data(), own.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), env.data()), 0);
    pids.push_back(pid);
    return pid;
  }
  // Looks until there is something, or a second is over.
  std::vector<CompilerRun> wait(CompilerWatch& watch) {
    std::vector<CompilerRun> out;
    for (int i = 0; i < 100 && out.empty(); ++i) {
      out = watch.look();
      if (out.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return out;
  }
  ~Running() override {
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  TempDir dir;
  std::vector<pid_t> pids;
};

// The scripts stop themselves: no child is left when they are killed.
TEST_F(Running, ADescendantIsFoundOnce) {
  CompilerWatch watch("");
  watch.add_root(::getpid(), 3);
  watch.look();
  const std::int64_t before = trace::now_ns();
  const std::string path = script("ptxas", "kill -STOP $$");
  start({path, "-arch=sm_90a", "gemm.cu"});
  const auto named = wait(watch);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].pid, pids.back());
  EXPECT_EQ(named[0].program, "ptxas");
  EXPECT_EQ(named[0].name, "gemm");
  EXPECT_EQ(named[0].arch, "sm_90a");
  EXPECT_EQ(named[0].rank, 3);
  EXPECT_GE(named[0].started_ns, before - 50'000'000);
  EXPECT_LE(named[0].started_ns, trace::now_ns() + 50'000'000);
  EXPECT_THAT(watch.look(), IsEmpty());
}

TEST_F(Running, StrangersAreNotOurs) {
  const std::string path = script("nvcc", "kill -STOP $$");
  CompilerWatch watch("WARMGATE_RUN=7.7.7");
  watch.add_root(1 << 22, 0);  // nobody
  start({path, "a.cu"});
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(watch.look(), IsEmpty());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  start({path, "b.cu"}, "WARMGATE_RUN=7.7.7");
  const auto runs = wait(watch);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].name, "b");
  EXPECT_FALSE(runs[0].rank.has_value());
}

TEST_F(Running, OfAChainTheFirst) {
  const std::string inner = script("cicc", "kill -STOP $$");
  // The outer one waits for the inner one; a shell may stand between.
  const std::string outer =
      script("nvcc", "trap 'kill -9 $!; exit' TERM; " + inner + " in.ii & wait");
  CompilerWatch watch("");
  watch.add_root(::getpid(), -1);
  const pid_t pid = start({outer, "gemm.cu"});
  std::vector<std::string> seen;
  for (int i = 0; i < 30; ++i) {
    for (const CompilerRun& run : watch.look()) seen.push_back(run.program);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(seen, std::vector<std::string>{"nvcc"});
  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  pids.clear();
}

TEST_F(Running, QuestionsAreNoCompilations) {
  const std::string path = script("gcc", "kill -STOP $$");
  CompilerWatch watch("");
  watch.add_root(::getpid(), -1);
  start({path, "--version"});
  start({path, "-Wl,-t", "-o", "/tmp/x", "-lcuda"});
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(watch.look(), IsEmpty());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace
}  // namespace warmgate::target
