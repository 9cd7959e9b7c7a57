// What cannot be started here is refused before anything starts; a gate skips it.
#include "harness/run/fit.h"

#include <gmock/gmock.h>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verdict::Verdict;

constexpr const char* kSmall =
    "scenario: small\n"
    "model: {preset: small-flash}\n"
    "limits: {max_model_len: 4096, device_memory_bytes: 80 GiB}\n"
    "workload: {requests: 1, prompt_tokens: 8, output_tokens: 2}\n";

class Fits : public Product {
 protected:
  // What loading or planning says is wrong; "" if it ran.
  std::string refused(const std::string& text) {
    const fs::path file = put("s.yaml", text);
    try {
      last_ = run({file});
      return "";
    } catch (const scenario::ScenarioError& error) {
      std::string out = error.what();
      const std::string prefix = dir_.path().string() + "/";
      for (std::size_t at = 0; (at = out.find(prefix, at)) != std::string::npos;)
        out.erase(at, prefix.size());
      return out;
    }
  }
  /// An engine that answers --devices with this script and is never started otherwise.
  void engine(const std::string& body) { options_.engine = script("engine", "#!/bin/sh\n" + body); }
};

TEST_F(Fits, TheEngineSaysWhatItHasOpsFor) {
  const EngineDevices has = ask_devices(options_.engine);
  EXPECT_TRUE(has.told);
  EXPECT_THAT(has.names, ::testing::Contains("meta"));
  for (const char* none : {"/bin/true", "/bin/false", "/nonexistent", "/bin/ls", "/bin/cat", ""})
    EXPECT_FALSE(ask_devices(none).told) << none;
  EXPECT_FALSE(ask_devices(script("noise", "#!/bin/sh\nyes 'no device'\n")).told);
}

TEST_F(Fits, ADeviceWithoutOpsIsRefusedWhereItWasWritten) {
  engine("echo meta; echo cpu");
  const std::string text = refused(std::string(kSmall) + "target: {native: {device: cuda}}\n");
  EXPECT_THAT(text,
              HasSubstr("s.yaml:5:19: target.native.device: this engine has no ops for device "
                        "cuda; it has meta, cpu; cuda needs a build with the CUDA parts"));
}

TEST_F(Fits, ADeviceAskedForByNameIsRefusedEverywhere) {
  engine("echo meta");
  options_.load.device = "cuda";
  for (const bool gate : {false, true}) {
    options_.skip_unfit = gate;
    EXPECT_THAT(refused(kSmall), HasSubstr("--device: this engine has no ops for device cuda"));
  }
}

TEST_F(Fits, AGateSkipsWhatTheScenarioAsksForAndRunsTheRest) {
  options_.skip_unfit = true;
  const GateResult result =
      run({put("a.yaml", std::string(kSmall) + "target: {native: {device: cuda}}\n"),
           put("b.yaml", kSmall)});
  EXPECT_EQ(result.scenarios[0].verdict, Verdict::kSkip) << result.scenarios[0].reason;
  EXPECT_THAT(result.scenarios[0].variants[0].runs[0].reason, HasSubstr("no ops for device cuda"));
  EXPECT_EQ(result.scenarios[1].verdict, Verdict::kPass) << result.scenarios[1].reason;
}

TEST_F(Fits, WhatTheMachineLacksIsSkippedBeforeTheBuildIsAsked) {
  EXPECT_EQ(
      refused(std::string(kSmall) + "target: {native: {device: cuda}}\nneeds: {gpus: 1000}\n"), "");
  EXPECT_EQ(last_.verdict, Verdict::kSkip);
}

TEST_F(Fits, AnEngineThatDoesNotTellIsStarted) {
  engine("exit 3");
  EXPECT_EQ(refused(std::string(kSmall) + "target: {native: {device: cuda}}\n"), "");
  EXPECT_EQ(last_.verdict, Verdict::kFail);
}

TEST_F(Fits, TheEnginesOwnArchitectureMustBeOneThatTheCompilerHas) {
  if (!jit::nvrtc().available) GTEST_SKIP() << jit::nvrtc().why_not;
  const std::string text = std::string(kSmall) + "architectures: [sm_42, sm_90a]\n";
  EXPECT_THAT(refused(text), HasSubstr("s.yaml:5:1: architectures: NVRTC "));
  EXPECT_THAT(refused(text), HasSubstr("has no sm_42; it has sm_"));
  options_.jit = jit::Backend::kHost;  // then nobody compiles for it
  EXPECT_EQ(refused(text), "");
  EXPECT_EQ(last_.verdict, Verdict::kPass);
}

TEST_F(Fits, AnotherArchitectureThatTheCompilerLacksIsNotObserved) {
  if (!jit::nvrtc().available) GTEST_SKIP() << jit::nvrtc().why_not;
  EXPECT_EQ(refused(std::string(kSmall) + "architectures: [sm_90a, sm_999]\n"), "");
  EXPECT_EQ(last_.verdict, Verdict::kPass) << last_.scenarios[0].reason;
  ASSERT_EQ(last_.not_observed.size(), 1u);
  EXPECT_THAT(last_.not_observed[0], HasSubstr("no compilation for sm_999"));
}

TEST_F(Fits, OptionsThatNameNothingUsable) {
  const auto error = [&] {
    try {
      check_options(options_);
      return std::string();
    } catch (const scenario::ScenarioError& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(error(), "");
  options_.engine = "/nonexistent/engine";
  options_.cache_dir = "/etc/passwd";
  EXPECT_THAT(error(), HasSubstr("--engine: /nonexistent/engine: no such file"));
  EXPECT_THAT(error(), HasSubstr("--cache-dir: /etc/passwd: not a folder"));
  options_.engine = "/";
  EXPECT_THAT(error(), HasSubstr("--engine: /: not a file"));
  options_.engine = put("text", "x");
  EXPECT_THAT(error(), HasSubstr("not executable"));
  options_.engine = "/bin/true";
  options_.cache_dir = dir_.path() / "new/folder";
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace warmgate::run::testing
