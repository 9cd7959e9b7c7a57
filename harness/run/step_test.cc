// The decision of a bisection's step, and what leads to it.
#include "harness/run/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/run/accept.h"
#include "harness/run/run_dir.h"

namespace warmgate::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using verdict::Outcome;
using verdict::Verdict;

verdict::Fingerprint print_of(const std::string& function) {
  verdict::Fingerprint out;
  out.phase = "profile";
  out.kind = "exception";
  out.type = "AssertionError";
  out.frames = {{function, "flashmla.cc"}};
  return out;
}

GateResult gate(Verdict verdict, Outcome outcome, const std::string& function = "") {
  verdict::RunRecord run;
  run.variant = "A";
  run.outcome = outcome;
  if (!function.empty()) run.fingerprint = print_of(function);
  VariantResult variant;
  variant.runs.push_back(std::move(run));
  ScenarioResult scenario;
  scenario.verdict = verdict;
  scenario.reason = "because";
  scenario.variants.push_back(std::move(variant));
  GateResult out;
  out.verdict = verdict;
  out.scenarios.push_back(std::move(scenario));
  return out;
}

TEST(Step, AnyFailureIsBadWhereNoneIsNamed) {
  EXPECT_EQ(decide(gate(Verdict::kPass, Outcome::kPassed), {}).step, Step::kGood);
  EXPECT_EQ(decide(gate(Verdict::kFail, Outcome::kCrashed, "f"), {}).step, Step::kBad);
  EXPECT_EQ(decide(gate(Verdict::kFail, Outcome::kPassed), {}).step, Step::kBad);  // a figure
  EXPECT_EQ(decide(gate(Verdict::kInconclusive, Outcome::kPassed), {}).step, Step::kCannotJudge);
  EXPECT_EQ(decide(gate(Verdict::kInfra, Outcome::kInfra), {}).step, Step::kCannotJudge);
  EXPECT_EQ(decide(gate(Verdict::kSkip, Outcome::kSkipped), {}).step, Step::kCannotJudge);
  // Expected to crash, and it did: that is what the scenario calls good.
  EXPECT_EQ(decide(gate(Verdict::kPass, Outcome::kCrashed, "f"), {}).step, Step::kGood);
}

TEST(Step, OnlyTheNamedFailureIsBad) {
  Wanted wanted;
  wanted.id = print_of("wanted").id();
  EXPECT_EQ(decide(gate(Verdict::kFail, Outcome::kCrashed, "wanted"), wanted).step, Step::kBad);
  // Whatever the scenario expects: the failure is there.
  EXPECT_EQ(decide(gate(Verdict::kPass, Outcome::kCrashed, "wanted"), wanted).step, Step::kBad);
  const StepResult other = decide(gate(Verdict::kFail, Outcome::kCrashed, "other"), wanted);
  EXPECT_EQ(other.step, Step::kCannotJudge);
  EXPECT_THAT(other.reason, HasSubstr("a different failure"));
  EXPECT_EQ(decide(gate(Verdict::kPass, Outcome::kPassed), wanted).step, Step::kGood);
  EXPECT_EQ(decide(gate(Verdict::kFail, Outcome::kPassed), wanted).step, Step::kCannotJudge);
  wanted.id = wanted.id.substr(0, 6);
  EXPECT_EQ(decide(gate(Verdict::kFail, Outcome::kCrashed, "wanted"), wanted).step, Step::kBad);
}

TEST(Step, NothingRunStopsTheBisection) {
  EXPECT_EQ(decide(GateResult{}, {}).step, Step::kStop);
  GateResult interrupted = gate(Verdict::kPass, Outcome::kPassed);
  interrupted.interrupted = true;
  EXPECT_EQ(decide(interrupted, {}).step, Step::kStop);
}

class StepFiles : public ::testing::Test {
 protected:
  RunDir dir_{"step-test"};
  target::CancelToken cancel_;
  std::filesystem::path put(const std::string& name, const std::string& text) {
    std::ofstream(dir_.path() / name) << text;
    return dir_.path() / name;
  }
  StepResult go(StepOptions options) { return step(options, cancel_); }
};

TEST_F(StepFiles, ReadsTheFailureOfAReport) {
  const auto print = print_of("wanted");
  nlohmann::json report = {{"schema", "report/1.0"}};
  report["scenarios"] = {{{"variants", {{{"runs", {{{"fingerprint", print.to_json()}}}}}}}}};
  const auto found = fingerprints_in(put("report.json", report.dump()));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id(), print.id());
  EXPECT_THROW(fingerprints_in(put("bad.json", "{")), std::runtime_error);
  EXPECT_THROW(fingerprints_in(put("none.json", "{\"fingerprint\": null}")), std::runtime_error);
  EXPECT_THROW(fingerprints_in(dir_.path() / "absent.json"), std::runtime_error);
}

TEST_F(StepFiles, AScenarioThatIsWrongStops) {
  StepOptions options;
  options.scenario = put("s.yaml", "scenaro: x\n");
  const StepResult result = go(options);
  EXPECT_EQ(result.step, Step::kStop);
  EXPECT_THAT(result.reason, HasSubstr("s.yaml"));
}

TEST_F(StepFiles, AFingerprintThatIsNoneStops) {
  StepOptions options;
  options.scenario = put("s.yaml", "scenario: x\n");
  for (const char* id : {"12345", "xyzxyz", "0123456789abc", "ABCDEF"}) {
    options.fingerprint = id;
    EXPECT_EQ(go(options).step, Step::kStop) << id;
  }
}

TEST_F(StepFiles, ABuildThatFailsCannotBeJudgedAndOneThatIsNotThereStops) {
  StepOptions options;
  options.scenario = put("s.yaml", "scenaro: x\n");
  options.build = {"false"};
  EXPECT_EQ(go(options).step, Step::kCannotJudge);
  options.build = {"sh", "-c", "kill -9 $$"};
  const StepResult killed = go(options);
  EXPECT_EQ(killed.step, Step::kCannotJudge);
  EXPECT_THAT(killed.reason, HasSubstr("SIGKILL"));
  options.build = {"/nonexistent/compiler"};
  EXPECT_EQ(go(options).step, Step::kStop);
  options.build = {"true"};
  EXPECT_THAT(go(options).reason, HasSubstr("s.yaml"));  // built, and then the scenario is read
}

TEST_F(StepFiles, AcceptTakesWhatWasSeenAndKeepsWhatWasNot) {
  GateResult result = gate(Verdict::kPass, Outcome::kPassed);
  result.scenarios[0].scenario.name = "s";
  result.scenarios[0].scenario.path = dir_.path() / "s.yaml";
  result.scenarios[0].variants[0].runs[0].sets["skips"] = {"one", "two"};
  result.scenarios[0].variants[0].runs[0].figures["kv_blocks"] = 7;
  auto files = accept(result);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].file, result.scenarios[0].scenario.accepted_path());
  EXPECT_THAT(files[0].variants, ElementsAre("A"));
  result.scenarios[0].variants[0].runs[0].variant = "B";
  files = accept(result);
  EXPECT_THAT(files[0].kept, ElementsAre("A"));
  const auto accepted = verdict::read_accepted(files[0].file);
  ASSERT_NE(accepted.find("A"), nullptr);
  EXPECT_EQ(accepted.find("A")->sets.at("skips").size(), 2u);
  ASSERT_NE(accepted.find("B"), nullptr);
}

TEST_F(StepFiles, AcceptRefusesRunsThatShowNothing) {
  GateResult result = gate(Verdict::kInfra, Outcome::kInfra);
  result.scenarios[0].scenario.path = dir_.path() / "s.yaml";
  EXPECT_THROW(accept(result), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(result.scenarios[0].scenario.accepted_path()));
  EXPECT_THROW(accept({}), std::runtime_error);
}

TEST_F(StepFiles, AcceptReadsAReport) {
  const auto scenario = put("s.yaml", "scenario: s\n");
  nlohmann::json report = {{"schema", "report/1.3"}, {"later", 1}};
  report["scenarios"] = {{{"name", "s"}, {"path", scenario.string()}}};
  report["scenarios"][0]["variants"] = {{{"name", "A"}}};
  report["scenarios"][0]["variants"][0]["runs"] = {
      {{"outcome", "failed"}, {"sets", {{"skips", {"x"}}}}, {"figures", {{"kv_blocks", 9}}}}};
  const auto files = accept_report(put("report.json", report.dump()));
  ASSERT_EQ(files.size(), 1u);
  const auto accepted = verdict::read_accepted(files[0].file);
  ASSERT_NE(accepted.find("A"), nullptr);
  EXPECT_EQ(accepted.find("A")->counts.at("kv_blocks"), 9);
  report["scenarios"].push_back(report["scenarios"][0]);
  report["scenarios"][1]["name"] = "t";
  report["scenarios"][1]["path"] = put("t.yaml", "scenario: t\n").string();
  const auto both = put("both.json", report.dump());
  EXPECT_EQ(accept_report(both).size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(dir_.path() / "t.accepted.json"));
  // Elsewhere: a file takes one scenario, a folder any number of different names.
  const auto where = dir_.path() / "accepted";
  try {
    accept_report(both, where);
    ADD_FAILURE() << "two scenarios in one file";
  } catch (const scenario::ScenarioError& error) {
    EXPECT_THAT(error.what(), HasSubstr("name a folder, e.g. " + where.string() + "/"));
  }
  EXPECT_EQ(accept_report(both, where / "").size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(where / "s.accepted.json"));
  EXPECT_TRUE(std::filesystem::exists(where / "t.accepted.json"));
  std::filesystem::create_directory(dir_.path() / "sub");
  report["scenarios"][1]["path"] = put("sub/s.yaml", "scenario: t\n").string();
  EXPECT_THROW(accept_report(put("twins.json", report.dump()), where), scenario::ScenarioError);
  report["schema"] = "report/2.0";
  EXPECT_THROW(accept_report(put("new.json", report.dump())), std::runtime_error);
  EXPECT_THROW(accept_report(put("bad.json", "[]")), std::runtime_error);
}

}  // namespace
}  // namespace warmgate::run
