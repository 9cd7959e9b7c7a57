// The plugin, from --probe nccl to the finding: processes that play NCCL's ranks, one of which
// waits.
#include <gmock/gmock.h>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::HasSubstr;

class NcclProbe : public Product {};

TEST_F(NcclProbe, AHungRunNamesTheMemberThatNeverCamePastAllLines) {
  const std::string host = (bin_dir() / "probe_fake_nccl").string();
  const fs::path ranks =
      script("ranks.sh", "#!/bin/sh\n" + host + " \"$NCCL_PROFILER_PLUGIN\" 5 rank 1 &\n" + host +
                             " \"$NCCL_PROFILER_PLUGIN\" 4 rank 0 &\nwait\n");
  options_.probes = {"nccl"};
  options_.settle_s = 0.1;  // the shell's children do not hear that it is ended
  // A hang is confirmed by a run with twice the deadline; until a second before it a run goes on.
  const auto run =
      run_one(put("s.yaml", "scenario: ranks\ntarget:\n  command:\n    argv: [" + ranks.string() +
                                "]\n    deadlines: {default: 1 s}\n"));
  EXPECT_EQ(run.outcome, verdict::Outcome::kHung);
  const contract::Result* judged = verdict::find_result(run, "ranks-agree");
  ASSERT_NE(judged, nullptr);
  ASSERT_EQ(judged->findings.size(), 1u) << judged->why;
  EXPECT_EQ(judged->findings[0].key, "world/stuck");
  EXPECT_THAT(
      judged->findings[0].message,
      HasSubstr("member 1 never entered operation 600, AllGather of 28 B; member 0 waits in "
                "it (its last was AllReduce of 4.00 MiB)"));
  EXPECT_EQ(state_of(run, "code-ready"), "not_applicable") << "nobody asked for that probe";
}

TEST_F(NcclProbe, ARunWithoutNcclIsNotObserved) {
  options_.probes = {"nccl"};
  const auto run = run_one(put("s.yaml", "scenario: none\ntarget: {command: {argv: [" +
                                             script("quiet.sh", "#!/bin/sh\n").string() + "]}}\n"));
  const contract::Result* judged = verdict::find_result(run, "ranks-agree");
  ASSERT_NE(judged, nullptr);
  EXPECT_EQ(judged->state, contract::State::kNotObserved);
  EXPECT_THAT(judged->why, HasSubstr("bypass"));
}

}  // namespace
}  // namespace warmgate::run::testing
