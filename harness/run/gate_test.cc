// Gates as a whole: what is refused before anything starts, what comes from outside the tree, what
// a killed warmgate leaves, and what is skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using verdict::Outcome;
using verdict::Verdict;

class Gates : public Product {
 protected:
  std::string command_target(const std::string& mode, const std::string& more = "") {
    const std::string argv = mode == "honest" ? "[" + worker("honest") + "]"
                                              : "[" + worker("liar") + ", --mode, " + mode + "]";
    return "scenario: " + mode + "\nabout: A command.\ntarget:\n  command:\n    argv: " + argv +
           "\n" + more;
  }
  fs::path command(const std::string& mode, const std::string& more = "") {
    return put(mode + ".yaml", command_target(mode, more));
  }
  static std::vector<nlohmann::json> rows_of(const fs::path& path) {
    std::vector<nlohmann::json> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }
};

TEST_F(Gates, AnHonestProgramPasses) {
  const verdict::RunRecord run = run_one(command("honest"));
  EXPECT_EQ(run.outcome, Outcome::kPassed) << story(run);
  EXPECT_EQ(last_.verdict, Verdict::kPass);
  EXPECT_FALSE(last_.machine.empty());
  EXPECT_EQ(run.environment, last_.machine);
  EXPECT_THAT(run.reproduce, HasSubstr("--variant"));
}

TEST_F(Gates, EveryFileThatIsWrongIsNamedBeforeAnythingStarts) {
  const fs::path good = command("honest"), one = put("one.yaml", "scenaro: x\n"),
                 two = put("two.yaml", "scenario: y\nmodel: {preset: nothing}\n");
  options_.rows = dir_.path() / "rows.jsonl";
  try {
    run({good, one, two});
    FAIL() << "ran";
  } catch (const scenario::ScenarioError& error) {
    std::string all;
    for (const auto& problem : error.problems()) all += problem.text() + "\n";
    EXPECT_THAT(all, HasSubstr("one.yaml:1:1"));
    EXPECT_THAT(all, HasSubstr("two.yaml:"));
  }
  EXPECT_FALSE(fs::exists(options_.rows));
}

TEST_F(Gates, AVariantThatNobodyHasIsRefusedWithTheNearest) {
  const fs::path file =
      put("v.yaml", command_target("honest") + "variants: {Alpha: {}, Beta: {}}\n");
  options_.variants = {"Alpah"};
  try {
    run({file});
    FAIL() << "ran";
  } catch (const scenario::ScenarioError& error) {
    EXPECT_THAT(error.problems().at(0).text(), HasSubstr("did you mean Alpha"));
  }
  options_.variants = {"Beta"};
  const GateResult result = run({file, command("exit3")});
  EXPECT_EQ(result.scenarios[0].variants.size(), 1u);
  EXPECT_EQ(result.scenarios[1].verdict, Verdict::kSkip);
  EXPECT_EQ(result.verdict, Verdict::kPass);
}

TEST_F(Gates, AMetricAndAContractFromOutsideTheTree) {
  options_.metrics = {
      put("metrics.yaml",
          "- {name: weights_gib, source: log, pattern: 'took (?<value>[0-9.]+) GiB', "
          "unit: GiB, direction: lower}\n"
          "- {name: prompt, source: json, event: request, pointer: /prompt_tokens, "
          "unit: tokens}\n")};
  script("judge.py",
         "#!/usr/bin/env python3\n"
         "import json, sys\n"
         "for i, line in enumerate(sys.stdin):\n"
         "    event = json.loads(line)\n"
         "    if event['ev'] == 'request' and event['prompt_tokens'] > 100:\n"
         "        print(json.dumps({'key': 'prompt', 'expected': 'at most 100 tokens', 'events': "
         "[i],\n"
         "                          'seen': str(event['prompt_tokens']), 'message': 'a long "
         "prompt'}))\n");
  options_.contracts = {
      put("contracts.yaml", "name: short-prompts\nargv: [./judge.py]\nneeds: [request]\n")};
  script("engine.sh",
         "#!/bin/sh\necho 'INFO weights took 12.5 GiB'\nexec " + worker("honest") + "\n");
  const std::string target =
      "scenario: outside\nabout: Judged from outside.\ntarget: {command: {argv: [./engine.sh]}}\n";

  const verdict::RunRecord run = run_one(put("outside.yaml", target));
  EXPECT_EQ(run.figures.at("weights_gib"), 12.5);
  EXPECT_EQ(run.figures.at("prompt"), 128);
  EXPECT_EQ(run.outcome, Outcome::kFailed) << story(run);
  EXPECT_THAT(broken(run), Contains("short-prompts"));
  EXPECT_THAT(run.reproduce, HasSubstr("--metrics"));
  EXPECT_THAT(run.reproduce, HasSubstr("--contracts"));

  // expect, gate and allow may speak of them, and are judged.
  run_one(put("named.yaml",
              target + "expect: {outcome: passed, figures: {weights_gib: 12.5}}\n"
                       "gate: {weights_gib: {max: 13}}\n"
                       "allow: [{contract: short-prompts, match: prompt, reason: known}]\n"));
  EXPECT_EQ(last_.verdict, Verdict::kPass) << last_.scenarios[0].reason;
  run_one(put("less.yaml",
              target + "gate: {weights_gib: {max: 12}}\n"
                       "allow: [{contract: short-prompts, match: prompt, reason: known}]\n"));
  EXPECT_EQ(last_.verdict, Verdict::kFail);
  EXPECT_THAT(last_.scenarios[0].reason, HasSubstr("weights_gib"));
}

TEST_F(Gates, WhatTheMachineLacksIsSkippedWithTheNumber) {
  const GateResult result = run({command("honest", "needs: {gpus: 1024}\n")});
  EXPECT_EQ(result.verdict, Verdict::kSkip);
  EXPECT_THAT(result.scenarios[0].reason, HasSubstr("1024"));
  EXPECT_EQ(exit_code({result.verdict}, false), 3);
  EXPECT_EQ(exit_code({result.verdict}, true), 0);
}

TEST_F(Gates, TimesAreGatedOnlyWhereNothingRanBeside) {
  const fs::path file = command("slow-child", "gate: {time_to_ready_s: {max: 60}}\n");
  options_.repeat = 3;
  options_.jobs = 3;
  const GateResult result = run({file});
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.scenarios[0].reason;
  for (const auto& run : result.scenarios[0].variants[0].runs) {
    EXPECT_TRUE(run.time_gated);
    EXPECT_FALSE(run.time_disturbed);
  }
}

TEST_F(Gates, RowsTellEveryTransition) {
  options_.rows = dir_.path() / "rows.jsonl";
  run({command("exit3")});
  std::vector<std::string> states;
  for (const auto& row : rows_of(options_.rows)) {
    states.push_back(row["state"]);
    EXPECT_THAT(std::string(row["schema"]), HasSubstr("rows/1."));
  }
  ASSERT_GE(states.size(), 6u);
  EXPECT_EQ(states.front(), "gate");
  EXPECT_EQ(states[1], "planned");
  EXPECT_EQ(states[2], "started");
  EXPECT_EQ(states[3], "phase");
  EXPECT_EQ(states[states.size() - 2], "judged");
  EXPECT_EQ(states.back(), "done");
  const auto rows = rows_of(options_.rows);
  EXPECT_EQ(rows[rows.size() - 2]["outcome"], "crashed");
  EXPECT_EQ(rows[rows.size() - 3]["workers"][0]["exit_code"], 3);
}

TEST_F(Gates, AKilledWarmgateLeavesWhatItSawAndNoWorker) {
  const fs::path file = command("hang-silent", "    deadlines: {default: 60 s}\n");
  options_.rows = dir_.path() / "rows.jsonl";
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      run({file});
    } catch (...) {
    }
    ::_exit(0);
  }
  const auto in_serve = [&] {
    std::ifstream in(options_.rows);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    return text.find("\"serve\"") != std::string::npos;
  };
  for (int i = 0; i < 500 && !in_serve(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto rows = rows_of(options_.rows);  // every line is legal JSON
  ASSERT_GE(rows.size(), 4u);
  EXPECT_EQ(rows[0]["state"], "gate");
  EXPECT_TRUE(rows[0].contains("machine"));
  EXPECT_EQ(rows.back()["state"], "phase");
  EXPECT_EQ(rows.back()["phase"], "serve");
  // Its worker dies with it.
  const auto workers = [&] {
    int found = 0;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator("/proc", failed)) {
      std::ifstream in(entry.path() / "environ");
      const std::string text((std::istreambuf_iterator<char>(in)), {});
      const std::string mark = "WARMGATE_SCENARIO=" + fs::absolute(file).string();
      if (text.find(mark) != std::string::npos) ++found;
    }
    return found;
  };
  for (int i = 0; i < 100 && workers() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(workers(), 0);
}

TEST_F(Gates, KnownFaultsAreAllowedAndNamed) {
  const std::string allow =
      "allow: [{contract: protocol, match: '*', reason: it never says bye, until: 2030-01-01}]\n";
  const fs::path file = command("no-bye", allow);
  options_.today = "2029-12-31";
  const verdict::RunRecord run = run_one(file);
  EXPECT_EQ(run.outcome, Outcome::kPassed) << story(run);
  ASSERT_FALSE(run.allowed.empty());
  EXPECT_EQ(run.allowed[0].reason, "it never says bye");
  options_.today = "2030-01-02";
  run_one(file);
  EXPECT_EQ(last_.verdict, Verdict::kFail);
  // What matches nothing any more is itself a finding.
  options_.today = "2029-12-31";
  run_one(command("honest", allow));
  EXPECT_EQ(last_.verdict, Verdict::kFail);
  EXPECT_THAT(last_.scenarios[0].reason, HasSubstr("matches nothing"));
}

TEST_F(Gates, RepeatsThatDoNotAgreeFail) {
  script("flaky.sh", "#!/bin/sh\nif mkdir once 2>/dev/null; then exec " + worker("honest") +
                         "; else exec " + worker("liar") + " --mode exit3; fi\n");
  options_.repeat = 3;
  const GateResult result = run(
      {put("flaky.yaml",
           "scenario: flaky\nabout: Now and then.\ntarget: {command: {argv: [./flaky.sh]}}\n")});
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_THAT(result.scenarios[0].reason, HasSubstr("do not agree"));
}

TEST_F(Gates, TheExitCodeIsTheFirstPresent) {
  EXPECT_EQ(exit_code({Verdict::kPass, Verdict::kInfra, Verdict::kFail}, false), 1);
  EXPECT_EQ(exit_code({Verdict::kPass, Verdict::kInconclusive, Verdict::kInfra}, false), 4);
  EXPECT_EQ(exit_code({Verdict::kPass, Verdict::kInconclusive}, false), 3);
  EXPECT_EQ(exit_code({Verdict::kPass, Verdict::kSkip}, false), 0);
  EXPECT_EQ(exit_code({}, false), 3);
}

TEST_F(Gates, BIsJudgedAgainstA) {
  const fs::path file =
      put("ab.yaml", command_target("honest") + "variants:\n  A: {target: {command: {argv: [" +
                         worker("liar") + ", --mode, exit3]}}}\n  B: {}\n");
  const GateResult result = run({file});
  EXPECT_EQ(compare(result.scenarios[0], "A", "B", options_).verdict, Verdict::kPass);
  EXPECT_EQ(compare(result.scenarios[0], "B", "A", options_).verdict, Verdict::kFail);
  EXPECT_EQ(compare(result.scenarios[0], "A", "nobody", options_).verdict, Verdict::kInconclusive);
}

}  // namespace
}  // namespace warmgate::run::testing
