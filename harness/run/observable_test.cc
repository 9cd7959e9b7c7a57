// doctor --target: the table held against machines and presets.
#include "harness/run/observable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/contract/contract.h"
#include "harness/run/inject.h"
#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using contract::Extent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Capability> machine(bool gpu = true, bool libraries = true) {
  using State = Capability::State;
  std::vector<Capability> out = {
      {"GPU", gpu ? State::kThere : State::kMissing, gpu ? "8" : "no NVIDIA driver or no GPU", {}},
      {"subreaper", State::kThere, "", {}}};
  for (const InjectedProbe& probe : probes()) {
    const bool there = libraries || probe.file.empty();
    out.push_back({"probe " + probe.name, there ? State::kThere : State::kMissing,
                   there ? "" : "no " + probe.file, probe.serves});
  }
  return out;
}

Observable of(const std::string& preset, const std::vector<Capability>& found = machine()) {
  return observable(target::find_preset(preset, target::presets_folder(source_dir() / "fixtures")),
                    found);
}

Extent cell(const Observable& all, const std::string& contract, const std::string& channel) {
  for (const ObservableContract& row : all.contracts) {
    if (row.contract == contract) return row.extents[contract::channel_index(channel)];
  }
  ADD_FAILURE() << contract;
  return Extent::kNone;
}

const ObservableChannel& channel_of(const Observable& all, const std::string& name) {
  return all.channels.at(contract::channel_index(name));
}

TEST(ObservableTable, EveryProbeThatCanBeAskedForIsAColumn) {
  for (const InjectedProbe& probe : probes()) {
    const std::size_t at = contract::channel_index(probe.name);
    ASSERT_LT(at, contract::kChannels) << "no column for --probe " << probe.name;
    EXPECT_EQ(contract::channels()[at].probe, probe.name);
  }
}

TEST(ObservableTable, WhatTheMachineHasIsShown) {
  const Observable vllm = of("vllm");
  EXPECT_EQ(vllm.contracts.size(), contract::builtin_contracts().size());
  EXPECT_EQ(cell(vllm, "code-ready", "cuda"), Extent::kFull);
  EXPECT_EQ(cell(vllm, "memory-kept", "cuda"), Extent::kPartial);
  EXPECT_EQ(cell(vllm, "spans-agree", "spans"), Extent::kFull);
  EXPECT_EQ(cell(vllm, "speculation-live", "http"), Extent::kFull);
  EXPECT_EQ(cell(vllm, "starts", "http"), Extent::kInferred);
  EXPECT_EQ(cell(vllm, "owned-resources", "log"), Extent::kNone);
}

TEST(ObservableTable, WhatTheMachineLacksIsNoneWithItsReason) {
  const Observable bare = of("vllm", machine(false));
  EXPECT_EQ(cell(bare, "code-ready", "cuda"), Extent::kNone);
  EXPECT_FALSE(channel_of(bare, "cuda").there);
  EXPECT_THAT(channel_of(bare, "cuda").why, HasSubstr("no GPU"));
  EXPECT_TRUE(channel_of(bare, "spans").there);
  const Observable unbuilt = of("vllm", machine(true, false));
  EXPECT_THAT(channel_of(unbuilt, "cuda").why, HasSubstr("libwarmgate_probe.so"));
  for (const ObservableContract& row : bare.contracts) {
    if (row.contract != "code-ready") continue;
    EXPECT_THAT(row.lost, ElementsAre("cuda: no NVIDIA driver or no GPU"));
  }
}

TEST(ObservableTable, WhatAnEngineDoesNotTellIsNone) {
  const Observable openai = of("openai");
  EXPECT_FALSE(channel_of(openai, "log").there);
  EXPECT_FALSE(channel_of(openai, "spans").there);
  EXPECT_EQ(cell(openai, "starts", "log"), Extent::kNone);
  EXPECT_EQ(cell(openai, "speculation-live", "http"), Extent::kNone);
  EXPECT_EQ(cell(openai, "answers-differ", "http"), Extent::kFull);
  EXPECT_FALSE(channel_of(of("llamacpp"), "python").there);
}

}  // namespace
}  // namespace warmgate::run::testing
