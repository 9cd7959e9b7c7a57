#include "harness/contract/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/contract/contract.h"
#include "harness/contract/test_trace.h"

namespace warmgate::contract::testing {
namespace {

TEST(ContractChannels, EveryContractHasARowInTheRegistrysOrder) {
  std::vector<std::string_view> rows, registry;
  for (const ContractChannels& row : contract_channels()) rows.push_back(row.contract);
  for (const Contract* contract : builtin_contracts()) registry.push_back(contract->name());
  EXPECT_EQ(rows, registry);
}

TEST(ContractChannels, EveryRowShowsSomethingAndSaysWhatItLeavesOut) {
  ASSERT_EQ(channels().size(), kChannels);
  for (const ContractChannels& row : contract_channels()) {
    bool shown = false, limited = false;
    for (const Extent extent : row.extents) {
      shown = shown || extent != Extent::kNone;
      limited = limited || extent == Extent::kPartial || extent == Extent::kInferred;
    }
    EXPECT_TRUE(shown) << row.contract << " can be shown by nothing";
    EXPECT_EQ(limited, !row.limits.empty()) << row.contract;
  }
  EXPECT_EQ(channel_index("own"), kChannels - 1);
  EXPECT_EQ(channel_index("telepathy"), kChannels);
  EXPECT_EQ(channels_of("no-such"), nullptr);
}

// What the code itself needs is what `own` has to send: a contract that has needs and no own cell
// would be a row that nobody checked.
TEST(ContractChannels, WhatNeedsEventsOfTheEngineHasThemInOwn) {
  for (const Contract* contract : builtin_contracts()) {
    if (contract->needs().empty()) continue;
    EXPECT_EQ(channels_of(contract->name())->extents[channel_index("own")], Extent::kFull)
        << contract->name();
  }
}

TEST(ShownBy, NamesWhatWasNotAskedFor) {
  TraceBuilder server;
  server.add("hello", {{"emits", {"ready", "http"}}}, 0, "http");
  EXPECT_EQ(shown_by("code-ready", View(server.trace())), "--probe cuda shows it");
  EXPECT_EQ(shown_by("owned-resources", View(server.trace())), "the engine's own events show it");
  EXPECT_EQ(shown_by("no-such", View(server.trace())), "");
  server.add("probe", {{"status", "asked"}, {"probes", {"cuda"}}}, 0, "harness");
  EXPECT_EQ(shown_by("code-ready", View(server.trace())), "") << "asked for, and it did not come";
  TraceBuilder own;
  own.hello();
  EXPECT_EQ(shown_by("owned-resources", View(own.trace())), "") << "it speaks already";
}

TEST(ShownBy, StandsBesideWhatNoSourceWouldHaveSent) {
  TraceBuilder server;
  server.add("hello", {{"emits", {"ready", "http"}}}, 0, "http");
  const Result unseen = judge(*find_contract("owned-resources"), Context{server.trace()});
  EXPECT_EQ(unseen.state, State::kNotObserved);
  EXPECT_EQ(why_not_observed(unseen),
            "no source would have sent these events (layer, requires); the engine's own events "
            "show it");
  // Where the run ended too early another channel would have been no help.
  const Result early =
      judge(*find_contract("ready-honest"), Context{TraceBuilder().hello().trace()});
  EXPECT_EQ(early.state, State::kNotObserved);
  EXPECT_EQ(early.shown_by, "");
  const Result fine = judge(*find_contract("code-ready"), Context{server.trace()});
  EXPECT_EQ(fine.state, State::kNotApplicable);
  EXPECT_EQ(fine.shown_by, "");
}

}  // namespace
}  // namespace warmgate::contract::testing
