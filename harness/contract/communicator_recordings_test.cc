// ranks-agree on what the plugin recorded of two ranks of torch.distributed on two H200s
// (fixtures/probe/README.md).
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What the plugin recorded of two ranks of torch.distributed on two H200s
// (fixtures/probe/README.md).
Result recorded_ranks(const std::string& name) {
  std::ifstream in(std::filesystem::path(std::getenv("WARMGATE_SOURCE_DIR")) /
                   "fixtures/probe/traces" / ("ranks-" + name + ".jsonl"));
  std::stringstream text;
  text << in.rdbuf();
  trace::Trace trace;
  trace::LineReader reader(name, trace);
  reader.feed(text.str());
  reader.finish();
  EXPECT_FALSE(trace.events.empty()) << name;
  EXPECT_TRUE(trace.bad_lines.empty()) << name;
  trace.sort_by_time();
  return judge_named("ranks-agree", trace);
}

TEST(NcclRecordings, RanksThatAgreeAreKept) {
  const Result clean = recorded_ranks("clean");
  EXPECT_EQ(clean.state, State::kKept);
  EXPECT_EQ(clean.why, "");
  EXPECT_THAT(clean.notes, IsEmpty());
  // It hung in the end of its communicators, which waited for a graph: no rank is to blame.
  const Result graph = recorded_ranks("graph");
  EXPECT_EQ(graph.state, State::kKept);
  EXPECT_THAT(graph.notes, IsEmpty());
}

TEST(NcclRecordings, ARankThatPartsIsNamed) {
  const Result swapped = recorded_ranks("swapped-order");
  ASSERT_EQ(swapped.findings.size(), 1u);
  EXPECT_EQ(swapped.findings[0].key, "communicator/order");
  EXPECT_EQ(swapped.findings[0].rank, 1);
  EXPECT_EQ(swapped.findings[0].phase, "warmup");
  EXPECT_THAT(swapped.findings[0].message,
              HasSubstr("part at operation 10: member 0 entered AllGather of 128.00 KiB, member 1 "
                        "ReduceScatter of 128.00 KiB"));
  const Result unequal = recorded_ranks("unequal-count");
  ASSERT_EQ(unequal.findings.size(), 1u);
  EXPECT_EQ(unequal.findings[0].key, "communicator/size");
  EXPECT_THAT(unequal.findings[0].seen, HasSubstr("AllReduce of 524288 x float32"));
}

TEST(NcclRecordings, ARankThatNeverCameIsNamed) {
  for (const auto& [name, operation] : {std::pair{"skip-collective", 7}, {"dead-rank", 4}}) {
    const Result result = recorded_ranks(name);
    ASSERT_EQ(result.findings.size(), 1u) << name;
    EXPECT_EQ(result.findings[0].key, "communicator/stuck");
    EXPECT_EQ(result.findings[0].rank, 1);
    EXPECT_THAT(result.findings[0].message,
                HasSubstr("member 1 never entered operation " + std::to_string(operation) +
                          ", AllReduce of 4.00 MiB; member 0 waits in it"));
  }
}

}  // namespace
}  // namespace warmgate::contract
