// SIGINT and git bisect: the two callers that speak in signals and exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool wait_for_text(const fs::path& file, const std::string& text) {
  // A minute: a run may have to wait for the machine, which others have for themselves.
  for (int i = 0; i < 2400; ++i) {
    if (slurp(file).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return false;
}

TEST(Interrupt, EndsEverythingAndStillWritesTheReport) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TempDir dir;
    const std::string file =
        dir.write("hang.yaml",
                  worker_scenario("worker_liar", "--mode, ignore-sigterm, --in, warmup"))
            .string();
    const fs::path rows = dir.path() / "rows.jsonl", json = dir.path() / "out.json";
    Running running(
        {program_path().string(), "run", file, "--rows", rows.string(), "--json", json.string()});
    ASSERT_TRUE(wait_for_text(rows, "warmup")) << slurp(rows);
    const auto start = std::chrono::steady_clock::now();
    ::kill(running.pid(), signal);
    const Ran ran = running.finish();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_EQ(ran.code, 130) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("interrupted"));
    const auto report = nlohmann::json::parse(slurp(json));
    EXPECT_EQ(report["interrupted"], true);
    EXPECT_EQ(report["exit_code"], 130);
    // Nobody is left who was started for this file.
    EXPECT_EQ(shell("pgrep -f '[w]orker_liar --mode ignore-sigterm --in warmup'").code, 1);
  }
}

// A repository whose engine is one file: which worker plays it. Commit 1 is good, 5 is broken in
// another way, 7 plants the fault, 9 is the bad end.
class Bisect : public ::testing::Test {
 protected:
  static constexpr const char* kGood = "honest";
  static constexpr const char* kOther = "liar --mode exit3 --in load";
  static constexpr const char* kPlanted = "liar --mode sigsegv --in warmup";

  void SetUp() override {
    if (shell("command -v git").code != 0) GTEST_SKIP() << "no git";
    const fs::path workers = test_path("WARMGATE_BIN_DIR") / "workers";
    dir_.write("repo/gate.yaml",
               "scenario: engine\nabout: The engine of this repository.\ntarget:\n  command:\n"
               "    argv: [/bin/sh, -c, 'exec " +
                   workers.string() + "/worker_$(cat engine)']\n");
    git("init -q");
    for (int commit = 1; commit <= 9; ++commit) {
      dir_.write("repo/engine", commit == 5 ? kOther : commit >= 7 ? kPlanted : kGood);
      dir_.write("repo/notes", std::to_string(commit));
      git("add -A");
      git("commit -q -m c" + std::to_string(commit));
    }
  }

  Ran git(const std::string& arguments) {
    const Ran ran = shell(
        "HOME=. git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main "
        "-c advice.detachedHead=false " +
            arguments,
        repo());
    EXPECT_EQ(ran.code, 0) << arguments << ran.out << ran.err;
    return ran;
  }
  fs::path repo() const { return dir_.path() / "repo"; }
  Ran step(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"step", "gate.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return warmgate(words, {}, repo());
  }
  TempDir dir_;
};

TEST_F(Bisect, StepSpeaksGitsProtocol) {
  git("checkout -q HEAD");
  const fs::path report = dir_.path() / "bad.json";
  ASSERT_EQ(warmgate({"run", "gate.yaml", "--json", report.string()}, {}, repo()).code, 1);
  const std::string id = nlohmann::json::parse(
      slurp(report))["scenarios"][0]["variants"][0]["runs"][0]["fingerprint"]["id"];
  for (const std::vector<std::string>& wanted :
       {std::vector<std::string>{"--fingerprint", id}, {"--like", report.string()}}) {
    EXPECT_EQ(step(wanted).code, 1);
    dir_.write("repo/engine", kOther);
    EXPECT_EQ(step(wanted).code, 125);
    dir_.write("repo/engine", kGood);
    EXPECT_EQ(step(wanted).code, 0);
    dir_.write("repo/engine", kPlanted);
  }
  EXPECT_EQ(step({"--build", "false"}).code, 125);
  EXPECT_EQ(step({"--build", "true"}).code, 1);
  EXPECT_EQ(step({"--fingerprint", "not hex"}).code, 128);
}

TEST_F(Bisect, GitFindsThePlantedCommit) {
  const fs::path report = dir_.path() / "bad.json";
  ASSERT_EQ(warmgate({"run", "gate.yaml", "--json", report.string()}, {}, repo()).code, 1);
  git("bisect start HEAD HEAD~8");
  const Ran ran =
      git("bisect run " + program_path().string() + " step gate.yaml -q --like " + report.string());
  EXPECT_THAT(ran.out, HasSubstr("is the first bad commit"));
  EXPECT_THAT(git("log -1 --format=%s refs/bisect/bad").out, HasSubstr("c7"));
  // The other failure stood exactly in the middle, so it was met, and was passed over.
  EXPECT_THAT(git("bisect log").out, HasSubstr("git bisect skip"));
}

}  // namespace
}  // namespace warmgate::cli
