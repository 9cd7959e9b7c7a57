// What GitHub Actions gets: annotations on stderr, the summary in its file, and only there.
#include "harness/cli/github.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/process_for_test.h"
#include "reports/markdown.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Github : public ::testing::Test {
 protected:
  Github() {
    fs::create_directories(dir_.path() / ".git");
    small_ = dir_.write("deep/small.yaml", small_scenario()).string();
    summary_ = dir_.path() / "summary.md";
  }
  std::vector<std::pair<std::string, std::string>> actions() const {
    return {{"GITHUB_ACTIONS", "true"}, {"GITHUB_STEP_SUMMARY", summary_.string()}};
  }
  TempDir dir_;
  std::string small_;
  fs::path summary_;
};

TEST_F(Github, AFailureIsAnnotatedAtItsVariant) {
  const Ran ran = warmgate({"run", small_, "--no-expect"}, actions());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("::error file=deep/small.yaml,line=9,col=3,title=FAIL small bad"));
  EXPECT_THAT(ran.err, HasSubstr("%0Arepeat: "));
  EXPECT_THAT(ran.out, Not(HasSubstr("::error")));
  EXPECT_THAT(slurp(summary_), HasSubstr("## ❌ FAIL"));
}

TEST_F(Github, AGoodRunIsSummedUpAndNotAnnotated) {
  const Ran ran = warmgate({"run", small_}, actions());
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, Not(HasSubstr("::")));
  EXPECT_THAT(slurp(summary_), HasSubstr("## ✅ PASS"));
}

TEST_F(Github, OnlyWhereItIsWanted) {
  EXPECT_THAT(warmgate({"run", small_, "--no-expect"}).err, Not(HasSubstr("::error")));
  const Ran off = warmgate({"run", small_, "--no-expect", "--no-github"}, actions());
  EXPECT_THAT(off.err, Not(HasSubstr("::error")));
  EXPECT_FALSE(fs::exists(summary_));
  EXPECT_THAT(warmgate({"run", small_, "--no-expect", "--github"}).err, HasSubstr("::error"));
  // A bisection runs hundreds of steps; plan and resolve judge nothing.
  EXPECT_THAT(warmgate({"step", small_, "--variant", "bad"}, actions()).err,
              Not(HasSubstr("::error")));
}

TEST_F(Github, TheSummaryIsAddedToWhatIsThere) {
  std::ofstream(summary_) << "# before\n| a |\n";
  warmgate({"run", small_}, actions());
  warmgate({"ab", small_}, actions());
  const std::string text = slurp(summary_);
  EXPECT_EQ(text.rfind("# before\n| a |\n\n\n## ✅ PASS", 0), 0u) << text.substr(0, 80);
  EXPECT_THAT(text, HasSubstr("warmgate ab"));
}

TEST_F(Github, TheStepsSummaryStaysWithinTheLimit) {
  for (const std::size_t used : {reports::kMarkdownLimit - 3000, reports::kMarkdownLimit - 1,
                                 reports::kMarkdownLimit + 10}) {
    std::ofstream(summary_) << std::string(used, 'x');
    const Ran ran = warmgate({"run", small_}, actions());
    EXPECT_EQ(ran.code, 0) << used;  // nobody asked for a summary
    EXPECT_LE(fs::file_size(summary_), std::max(used, reports::kMarkdownLimit));
    EXPECT_EQ(ran.err.find("cannot add to") != std::string::npos,
              used + 1000 > reports::kMarkdownLimit);
  }
}

TEST_F(Github, ASummaryThatCannotBeWrittenIsFourOnlyWhereItWasAskedFor) {
  const std::vector<std::pair<std::string, std::string>> lost = {
      {"GITHUB_ACTIONS", "true"}, {"GITHUB_STEP_SUMMARY", "/nowhere/at/all"}};
  const Ran silent = warmgate({"run", small_}, lost);
  EXPECT_EQ(silent.code, 0);
  EXPECT_THAT(silent.err, HasSubstr("/nowhere/at/all"));
  EXPECT_EQ(warmgate({"run", small_, "--github"}, lost).code, 4);
}

TEST_F(Github, MarkdownIntoTheSummaryIsNotWrittenTwice) {
  warmgate({"run", small_, "--markdown", summary_.string()}, actions());
  const std::string text = slurp(summary_);
  const std::size_t once = text.find("· warmgate run");
  ASSERT_NE(once, std::string::npos);
  EXPECT_EQ(text.find("· warmgate run", once + 1), std::string::npos);
}

TEST_F(Github, TheSummaryIsNoScenarioAndNoOtherOutput) {
  const std::vector<std::pair<std::string, std::string>> scenario = {
      {"GITHUB_ACTIONS", "true"}, {"GITHUB_STEP_SUMMARY", small_}};
  const std::string before = slurp(small_);
  const Ran ran = warmgate({"run", small_}, scenario);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("is the scenario itself"));
  EXPECT_EQ(slurp(small_), before);
  EXPECT_EQ(warmgate({"run", small_, "--junit", summary_.string()}, actions()).code, 2);
}

TEST_F(Github, UsageErrorsStandAtTheirLine) {
  std::string text = small_scenario();
  text.replace(text.find("max_model_len"), 13, "max_modle_len");
  dir_.write("typo.yaml", text);
  const Ran ran = warmgate({"gate", "typo.yaml", small_, "--keep-going"}, actions(), dir_.path());
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("::error file=typo.yaml,line=5,col=10,title="));
  EXPECT_THAT(warmgate({"run", "typo.yaml"}, actions(), dir_.path()).err,
              HasSubstr("::error file=typo.yaml,line=5,col=10,title="));
  EXPECT_THAT(warmgate({"run", small_, "--json", "/nowhere/x"}, actions()).err,
              HasSubstr("cannot write /nowhere/x: there is no folder /nowhere"));
}

TEST_F(Github, JsonOnStdoutStaysJson) {
  const Ran ran = warmgate({"run", small_, "--no-expect", "--json", "-"}, actions());
  EXPECT_EQ(ran.out.front(), '{');
  EXPECT_THAT(ran.out, Not(HasSubstr("::error file")));
  EXPECT_THAT(ran.err, HasSubstr("::error file"));
}

TEST_F(Github, SecretsAreInNeither) {
  const std::string file =
      dir_.write("liar.yaml", worker_scenario("worker_liar", "--mode, secrets")).string();
  auto env = actions();
  env.emplace_back("FIXTURE_TOKEN", "hunter2-very-secret");
  const Ran ran = warmgate({"run", file, "--markdown", (dir_.path() / "x.md").string()}, env);
  for (const std::string& text : {ran.err, slurp(summary_), slurp(dir_.path() / "x.md")})
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace warmgate::cli
