#include "harness/run/inject.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/run/fit.h"
#include "harness/run/reproduce.h"
#include "harness/scenario/problems.h"

namespace warmgate::run {
namespace {

using ::testing::HasSubstr;

TEST(Inject, EveryWorkerGetsTheProbeAndTheScenariosOwnVariableWins) {
  target::TargetSpec spec;
  spec.workers.resize(2);
  spec.workers[1].env["CUDA_INJECTION64_PATH"] = "/opt/other/tool.so";
  inject({}, spec);
  EXPECT_TRUE(spec.workers[0].env.empty());
  EXPECT_FALSE(spec.events_dir);
  inject({"cuda"}, spec);
  EXPECT_THAT(spec.workers[0].env["CUDA_INJECTION64_PATH"], HasSubstr("lib/libwarmgate_probe.so"));
  EXPECT_EQ(spec.workers[1].env["CUDA_INJECTION64_PATH"], "/opt/other/tool.so");
  EXPECT_TRUE(spec.events_dir);
}

TEST(Inject, NcclLoadsItsPluginUnlessTheScenarioHasOneOfItsOwn) {
  target::TargetSpec spec;
  spec.workers.resize(2);
  spec.workers[1].env["NCCL_PROFILER_PLUGIN"] = "inspector";
  inject({"nccl"}, spec);
  EXPECT_THAT(spec.workers[0].env["NCCL_PROFILER_PLUGIN"], HasSubstr("lib/libwarmgate_nccl.so"));
  EXPECT_EQ(spec.workers[0].env.count("CUDA_INJECTION64_PATH"), 0u);
  EXPECT_EQ(spec.workers[1].env["NCCL_PROFILER_PLUGIN"], "inspector");
}

TEST(Inject, ACoreDumpsPipeLiesBesideTheEvents) {
  target::TargetSpec spec;
  spec.workers.resize(1);
  spec.run_dir = "/run/dir";
  inject({"core"}, spec);
  const auto& env = spec.workers[0].env;
  EXPECT_EQ(env.at("CUDA_ENABLE_USER_TRIGGERED_COREDUMP"), "1");
  EXPECT_EQ(env.at("CUDA_COREDUMP_PIPE"), "/run/dir/events/core-pipe.%p");
  EXPECT_EQ(env.at("CUDA_COREDUMP_FILE"), "/run/dir/events/core.%p");
  EXPECT_EQ(env.count("CUDA_INJECTION64_PATH"), 0u);
  EXPECT_TRUE(spec.events_dir);
}

TEST(Inject, TheDriverDumpsNothingWhereCuptiIsSubscribed) {
  EXPECT_TRUE(wrong_with({"core"}).empty());
  ASSERT_EQ(wrong_with({"core", "cuda"}).size(), 1u);
  EXPECT_THAT(wrong_with({"core", "cuda"})[0], HasSubstr("exclude each other"));
}

TEST(Inject, OurPythonFolderGoesInFrontOfWhateverIsThere) {
  target::TargetSpec spec;
  spec.workers.resize(3);
  spec.workers[1].env["PYTHONPATH"] = "/opt/engine:/opt/more";
  spec.workers[2].env["PYTHONPATH"] = "";  // an environment that wants nothing of ours
  const char* before = std::getenv("PYTHONPATH");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("PYTHONPATH", "/inherited", 1);
  inject({"python"}, spec);
  before != nullptr ? ::setenv("PYTHONPATH", kept.c_str(), 1) : ::unsetenv("PYTHONPATH");
  const auto path = [&](std::size_t i) { return spec.workers[i].env["PYTHONPATH"]; };
  EXPECT_THAT(path(0), ::testing::MatchesRegex("/.*/fixtures/probe/python:/inherited"));
  EXPECT_THAT(path(1), ::testing::MatchesRegex("/.*/probe/python:/opt/engine:/opt/more"));
  EXPECT_THAT(path(2), ::testing::EndsWith("/probe/python"));
  EXPECT_EQ(spec.workers[0].env.count("CUDA_INJECTION64_PATH"), 0u);
}

TEST(Inject, WhatThereIsNoProbeForIsRefused) {
  Options options;
  options.probes = {"cuda", "rocm"};
  try {
    check_options(options);
    FAIL() << "accepted";
  } catch (const scenario::ScenarioError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_THAT(error.problems()[0].text(), HasSubstr("there is no probe 'rocm'; one of"));
    EXPECT_THAT(error.problems()[0].text(), HasSubstr("cuda"));
  }
}

TEST(Inject, TheCommandThatRepeatsARunNamesIt) {
  Options options;
  options.probes = {"cuda"};
  EXPECT_THAT(reproduce_command("s.yaml", "A", options), HasSubstr("--probe cuda"));
}

}  // namespace
}  // namespace warmgate::run
