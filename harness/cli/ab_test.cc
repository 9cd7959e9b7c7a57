// warmgate ab as a shell sees it: sides by their names, and a code that says whose fault it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AbOfServers : public ::testing::Test {
 protected:
  // Two sides of one small server; `b` is what the other one changes.
  Ran ab(const std::string& b, std::vector<std::string> more = {}) {
    const fs::path file = dir_.path() / "two.yaml";
    std::ofstream(file) << "scenario: two\ntarget:\n  server:\n    command: [python3, "
                        << source_path("fixtures/workers/small_server.py").string()
                        << ", --port, \"{port}\"]\n"
                           "workload: {requests: 1, prompt_tokens: 4, output_tokens: 3}\n"
                           "gate: {output_tokens: {max: 2}}\n"
                           "variants:\n  old: {}\n  new: "
                        << b << "\n";
    std::vector<std::string> argv = {program_path().string(), "ab", file.string()};
    argv.insert(argv.end(), more.begin(), more.end());
    return Running(argv).finish();
  }
  TempDir dir_;
};

// A retry may help, so it is not the code of a comparison that cannot be made.
TEST_F(AbOfServers, ASideThatTheMachineKeptFromRunningIsFour) {
  const Ran ran =
      ab("{target: {server: {command: [/nowhere/python3, \"{port}\"]}}}", {"old", "new"});
  EXPECT_EQ(ran.code, 4) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("side new has no valid sample: "));
  EXPECT_THAT(ran.out, HasSubstr("/nowhere/python3 is missing"));
}

TEST_F(AbOfServers, TextsSpeakOfTheSidesByTheirNamesAndOfUnits) {
  const Ran ran = ab("{}", {"old", "new"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("gate output_tokens: expected <= 2 tokens, saw 3 tokens"));
  EXPECT_THAT(ran.out, Not(HasSubstr("A is ")));
  EXPECT_THAT(ran.out, Not(HasSubstr("outcome of A")));
}

}  // namespace
}  // namespace warmgate::cli
