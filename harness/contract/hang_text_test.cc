#include "harness/contract/hang_text.h"

#include <gmock/gmock.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;
using ::testing::HasSubstr;

trace::Event hang(trace::Fields body, std::optional<int> rank = std::nullopt) {
  return trace::harness_event("hang", std::move(body), rank);
}

TEST(HangText, SaysWhatIsKnownAndTheBestOfIt) {
  EXPECT_EQ(hang_text(hang({{"call", "cuStreamSynchronize"},
                            {"inside_s", 12.34},
                            {"kernels", {"spin", "fill"}},
                            {"frames",
                             {"synchronize (/usr/lib/python3.11/site-packages/torch/cuda.py:9)",
                              "step (engine.py:12)", "main (engine.py:40)"}},
                            {"waits", "futex"}})),
            "in cuStreamSynchronize for 12.3 s, in kernel spin and 1 more, at step (engine.py:12)");
  EXPECT_EQ(hang_text(hang({{"state", "S"}, {"waits", "futex"}})), "waiting in futex");
  EXPECT_EQ(hang_text(hang({{"state", "R"}})), "running on the CPU");
  EXPECT_EQ(hang_text(hang({{"pid", 3}})), "");
}

TEST(HangText, TheMostTellingProcessIsTheReasonAndAllAreNotes) {
  TraceBuilder t;
  t.hello().begin("serve");
  t.add("deadline", {{"phase", "serve"}, {"kind", "silence"}}, 0, "harness");
  t.add("hang", {{"pid", 7}, {"process", "sh"}, {"state", "S"}, {"waits", "wait4"}}, 0, "harness");
  t.add("hang",
        {{"pid", 8}, {"process", "python3 e.py"}, {"call", "cuGraphLaunch"}, {"inside_s", 2.0}}, 1,
        "harness");
  const trace::Trace trace = t.exited(0, 0, true).trace();
  const View view(trace);
  EXPECT_EQ(most_telling_hang(view), "rank 1 was in cuGraphLaunch for 2.0 s");
  const Result result = judge_named("starts", trace);
  ASSERT_EQ(result.state, State::kBroken);
  std::vector<std::string> notes;
  for (const Finding& note : result.notes) notes.push_back(note.message);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("python3 e.py (pid 8) was in cuGraphLaunch")));
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("sh (pid 7) was waiting in wait4")));
}

TEST(HangText, AParentThatWaitsForItsChildrenSaysLeast) {
  TraceBuilder t;
  t.hello();
  t.add("hang", {{"pid", 7}, {"state", "S"}, {"waits", "wait4"}}, 0, "harness");
  t.add("hang", {{"pid", 8}, {"state", "S"}, {"waits", "futex"}}, 0, "harness");
  t.add("hang", {{"pid", 9}, {"state", "S"}, {"waits", "waitid"}}, 0, "harness");
  EXPECT_EQ(most_telling_hang(View(t.trace())), "rank 0 was waiting in futex");
}

}  // namespace
}  // namespace warmgate::contract
