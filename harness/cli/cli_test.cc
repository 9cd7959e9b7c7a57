// The program as its users meet it: exit codes, streams, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/process_for_test.h"
#include "reports/schema_check.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kDspark = "scenarios/seeds/dspark-absent-topk-buffer.yaml";
const std::string kZero = "scenarios/seeds/zero-compress-ratio-warmup-key.yaml";

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(program_path())) << program_path();
    small_ = dir_.write("small.yaml", small_scenario()).string();
  }
  TempDir dir_;
  std::string small_;
};

TEST_F(Cli, TheSeedsPassAndShowBothResults) {
  const Ran ran = warmgate({"gate", source_path("scenarios/seeds").string()});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("crashed in profile, as expected"));
  EXPECT_THAT(ran.out, HasSubstr("topk_indices_buffer"));
  EXPECT_THAT(ran.out, HasSubstr("COMPRESS_RATIO=0"));
  EXPECT_THAT(ran.out, HasSubstr("9,222,468"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
}

TEST_F(Cli, WithoutExpectTheFaultFailsAndTheFixPasses) {
  const std::string seed = source_path(kDspark).string();
  const Ran a = warmgate({"run", seed, "--variant", "A", "--no-expect"});
  EXPECT_EQ(a.code, 1) << a.err;
  EXPECT_THAT(a.out, HasSubstr("repeat: "));
  EXPECT_THAT(a.out, HasSubstr("layers 43,44,45 (draft, swaonly)"));
  const Ran b = warmgate({"run", seed, "--variant", "B", "--no-expect"});
  EXPECT_EQ(b.code, 0) << b.out << b.err;
}

TEST_F(Cli, TheRepeatCommandRepeats) {
  const Ran a = warmgate({"run", small_, "--variant", "bad", "--no-expect"});
  ASSERT_EQ(a.code, 1) << a.err;
  const std::size_t at = a.out.find("repeat: ") + 8;
  const std::string command = a.out.substr(at, a.out.find('\n', at) - at);
  EXPECT_EQ(shell(command).code, 1) << command;
}

TEST_F(Cli, TheReportKnowsWhichWarmgateItWas) {
  const auto report = nlohmann::json::parse(warmgate({"run", small_, "--json", "-"}).out);
  const std::string revision = report["machine"]["warmgate_revision"];
  // Outside of a repository nobody knows; inside it is that of the tree.
  const Ran git = shell("git rev-parse HEAD", source_path("."));
  if (git.code != 0) {
    EXPECT_EQ(revision, "unknown");
  } else {
    EXPECT_THAT(revision, ::testing::MatchesRegex("[0-9a-f]{12}(-dirty)?"));
  }
}

TEST_F(Cli, TheReportsVerbIsThatOfItsCommand) {
  for (const std::string verb : {"run", "gate"}) {
    const Ran ran = warmgate({verb, small_, "--no-expect", "--json", "-"});
    const auto report = nlohmann::json::parse(ran.out);
    EXPECT_EQ(report["verb"], verb);
    const std::string command = report["command"];
    EXPECT_THAT(command, HasSubstr(" " + verb + " " + small_));
    EXPECT_EQ(shell(command).code, ran.code) << command;
  }
}

TEST_F(Cli, WhatThisBuildCannotStartIsNoFailure) {
  for (const char* command : {"run", "gate", "ab", "accept"}) {
    const Ran ran = warmgate({command, small_, "--device", "cuda"});
    EXPECT_EQ(ran.code, 2) << command << ran.out;
    EXPECT_THAT(ran.err,
                HasSubstr("--device: this engine has no ops for device cuda; it has meta"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_EQ(warmgate({"step", small_, "--device", "cuda"}).code, 128);
  // Sizes and keys can be had without the device.
  EXPECT_EQ(warmgate({"plan", small_, "--device", "cuda"}).code, 0);
  EXPECT_EQ(warmgate({"resolve", small_, "--device", "cuda"}).code, 0);
  const std::string file =
      dir_.write("cuda.yaml", small_scenario() + "target: {native: {device: cuda}}\n").string();
  const Ran run = warmgate({"run", file});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("cuda.yaml:"));
  EXPECT_THAT(run.err, HasSubstr("target: {native: {device: cuda}}"));
  const Ran gate = warmgate({"gate", file, small_});
  EXPECT_EQ(gate.code, 0) << gate.out << gate.err;
  EXPECT_THAT(gate.out, HasSubstr("SKIP"));
  EXPECT_EQ(warmgate({"gate", file}).code, 3);
}

TEST_F(Cli, ATypoIsTwoAndIsPointedAt) {
  std::string text = small_scenario();
  text.replace(text.find("max_model_len"), 13, "max_modle_len");
  text += "nonsense: 1\n";
  const std::string file = dir_.write("typo.yaml", text).string();
  for (const char* command : {"run", "gate", "ab", "resolve", "plan", "keys", "accept"}) {
    const Ran ran = warmgate({command, file});
    EXPECT_EQ(ran.code, 2) << command;
    EXPECT_THAT(ran.err, HasSubstr(file + ":5:10: limits.max_modle_len: ")) << command;
    EXPECT_THAT(ran.err, HasSubstr("max_model_len"));  // what was meant
    EXPECT_THAT(ran.err, HasSubstr("nonsense"));       // all of them in one go
    EXPECT_THAT(ran.err, HasSubstr("    5 | limits: {max_modle_len"));
    EXPECT_THAT(ran.err, HasSubstr("^"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_EQ(warmgate({"step", file}).code, 128);
}

TEST_F(Cli, BadUsageIsTwo) {
  EXPECT_EQ(warmgate({}).code, 2);
  EXPECT_EQ(warmgate({"frobnicate"}).code, 2);
  EXPECT_EQ(warmgate({"run", "/nowhere/at/all.yaml"}).code, 2);
  EXPECT_EQ(warmgate({"gate", "/nowhere/*.yaml"}).code, 2);
  const Ran variant = warmgate({"run", small_, "--variant", "god"});
  EXPECT_EQ(variant.code, 2);
  EXPECT_THAT(variant.err, HasSubstr("good"));
  EXPECT_EQ(warmgate({"run", small_, "--set", "limits.frob=1"}).code, 2);
}

TEST_F(Cli, AWrongOptionIsNamedAndNotItsValue) {
  const Ran ran = warmgate({"run", small_, "--varian", "good"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("unknown option '--varian'; did you mean '--variant'?"));
  EXPECT_THAT(warmgate({"run", small_, "more"}).err, HasSubstr("unexpected 'more'"));
}

TEST_F(Cli, HelpOfEveryCommand) {
  EXPECT_EQ(warmgate({"--help"}).code, 0);
  EXPECT_THAT(warmgate({"--version"}).out, HasSubstr("warmgate "));
  for (const char* command :
       {"run", "ab", "gate", "step", "resolve", "plan", "keys", "accept", "schema", "doctor"}) {
    const Ran ran = warmgate({command, "--help"});
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_THAT(ran.out, HasSubstr("--")) << command;
    EXPECT_THAT(ran.err, IsEmpty());
  }
}

TEST_F(Cli, ColourIsForTerminalsAndThoseWhoAsk) {
  EXPECT_THAT(warmgate({"run", small_}).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(warmgate({"run", small_, "--color", "always"}).out, HasSubstr("\x1b["));
  // script(1) gives a terminal; without it the same is tested on style_for().
  if (shell("command -v script").code != 0) return;
  const std::string command = program_path().string() + " run " + small_ + " > /dev/stdout";
  const auto on_terminal = [&](const std::string& before) {
    return shell(before + " script -qec '" + command + "' /dev/null").out;
  };
  EXPECT_THAT(on_terminal("TERM=xterm"), HasSubstr("\x1b["));
  EXPECT_THAT(on_terminal("TERM=xterm NO_COLOR=1"), Not(HasSubstr("\x1b[3")));
}

TEST_F(Cli, AsciiWhereTheLocaleIsNotUtf8) {
  const Ran ran = warmgate({"run", small_}, {{"LC_ALL", "C"}});
  for (const char c : ran.out) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST_F(Cli, JsonConformsAndStdoutHoldsNothingElse) {
  const Ran ran = warmgate({"run", small_, "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_TRUE(nlohmann::json::accept(ran.out)) << ran.out.substr(0, 200);
  const auto report = nlohmann::json::parse(ran.out);
  reports::SchemaCheck check(
      nlohmann::json::parse(slurp(source_path("reports/report.schema.json"))));
  EXPECT_THAT(check.problems(report), IsEmpty());
  EXPECT_THAT(ran.err, HasSubstr("PASS"));  // the person's report goes to stderr
  EXPECT_EQ(report["verdict"], "PASS");
  EXPECT_EQ(report["scenarios"][0]["variants"][0]["runs"][0]["outcome"], "crashed");
}

TEST_F(Cli, FilesAreWritten) {
  const fs::path json = dir_.path() / "out.json", xml = dir_.path() / "out.xml",
                 rows = dir_.path() / "rows.jsonl", md = dir_.path() / "out.md";
  const Ran ran =
      warmgate({"run", small_, "--variant", "bad", "--no-expect", "--json", json.string(),
                "--junit", xml.string(), "--rows", rows.string(), "--markdown", md.string()});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(slurp(json))["exit_code"], 1);
  EXPECT_THAT(slurp(xml), HasSubstr("<failure type=\"FAIL\""));
  EXPECT_THAT(slurp(rows), HasSubstr("\"rows/1.0\""));
  EXPECT_EQ(slurp(md).rfind("## ❌ FAIL · warmgate run", 0), 0u);
  EXPECT_THAT(ran.out, HasSubstr("FAIL"));
}

TEST_F(Cli, JsonToStdoutByAnyName) {
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const Ran ran = warmgate({"run", small_, "--json", name});
    EXPECT_EQ(ran.code, 0) << name;
    EXPECT_TRUE(nlohmann::json::accept(ran.out)) << name << ran.out;
  }
}

TEST_F(Cli, ClosedAndFullStreams) {
  const std::string command = program_path().string() + " run " + small_;
  // The reader goes away: the verdict stands, and nothing is said about it.
  const Ran pipe = shell("(" + command + "; echo code $? >&2) | true");
  EXPECT_THAT(pipe.err, HasSubstr("code 0"));
  EXPECT_THAT(pipe.err, Not(HasSubstr("cannot write")));
  EXPECT_THAT(shell("(" + command + " --json -; echo code $? >&2) | true").err,
              HasSubstr("code 0"));
  EXPECT_EQ(shell(command + " >&-").code, 0);
  EXPECT_EQ(shell(command + " <&- >&- 2>&-").code, 0);
  const Ran full = shell(command + " > /dev/full");
  EXPECT_EQ(full.code, 4);
  EXPECT_THAT(full.err, HasSubstr("stdout"));
}

TEST_F(Cli, SoftVerdictsAndSkips) {
  EXPECT_EQ(warmgate({"run", small_, "--variant", "bad", "--no-expect", "--soft", "fail"}).code, 0);
  EXPECT_EQ(warmgate({"run", small_, "--variant", "bad", "--no-expect", "--soft", "infra"}).code,
            1);
  const std::string skipped =
      dir_.write("skipped.yaml", small_scenario() + "needs: {gpus: 64}\n").string();
  EXPECT_EQ(warmgate({"run", skipped}).code, 3);
  EXPECT_EQ(warmgate({"run", skipped, "--allow-skip"}).code, 0);
  EXPECT_EQ(warmgate({"gate", skipped, small_}).code, 0);  // something was judged
}

TEST_F(Cli, ACrashOfTheTargetIsNeverOurExitCode) {
  const std::string file =
      dir_.write("liar.yaml", worker_scenario("worker_liar", "--mode, sigsegv")).string();
  const Ran ran = warmgate({"run", file});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_EQ(ran.signal, 0);
  EXPECT_THAT(ran.out, HasSubstr("SIGSEGV"));
}

TEST_F(Cli, GateTakesTagsAndKeepsGoing) {
  const std::string broken = dir_.write("broken.yaml", "scenario: broken\nfrob: 1\n").string();
  EXPECT_EQ(warmgate({"gate", small_, broken}).code, 2);
  const Ran going = warmgate({"gate", small_, broken, "--keep-going"});
  EXPECT_EQ(going.code, 2);
  EXPECT_THAT(going.out, HasSubstr("1 scenario,"));
  EXPECT_THAT(going.err, HasSubstr("frob"));
  EXPECT_EQ(warmgate({"gate", small_, "--tags", "tiny"}).code, 0);
  const Ran none = warmgate({"gate", small_, "--tags", "huge", "--json", "-"});
  EXPECT_EQ(none.code, 3);
  EXPECT_EQ(nlohmann::json::parse(none.out)["verdict"], "SKIP");
  EXPECT_EQ(warmgate({"gate", small_, "--tags", "huge", "--allow-skip"}).code, 0);
}

TEST_F(Cli, AbComparesTwoVariants) {
  const Ran ran = warmgate({"ab", small_});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;  // the second one passed
  EXPECT_THAT(ran.out, HasSubstr("good against bad"));
  EXPECT_THAT(ran.out, HasSubstr("only bad: owned-resources"));
  const Ran back = warmgate({"ab", small_, "good", "bad"});
  EXPECT_EQ(back.code, 1);
  EXPECT_THAT(back.out, HasSubstr("bad against good"));
  EXPECT_EQ(warmgate({"ab", small_, "good", "good"}).code, 2);
  EXPECT_EQ(warmgate({"ab", small_, "good", "gone"}).code, 2);
}

TEST_F(Cli, PlanPrintsCapacityAndWorkspace) {
  const Ran ran = warmgate({"plan", source_path(kDspark).string(), "--variant", "B"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* figure :
       {"10,778", "9,222,468", "8.80x", "1,002,240", "870,912", "656,640", "861,120", "94,795",
        "36.53", "1076.53", "84.53", "324.53", "1321.00", "short by 240.00"}) {
    EXPECT_THAT(ran.out, HasSubstr(figure));
  }
  const Ran json = warmgate({"plan", source_path(kDspark).string(), "--json", "-"});
  const auto plan = nlohmann::json::parse(json.out);
  EXPECT_EQ(plan["schema"], "plan/1.0");
  EXPECT_THAT(plan["plans"][0]["stopped"].get<std::string>(), HasSubstr("crashed in profile"));
  EXPECT_TRUE(plan["plans"][0]["kv"].is_null());
  EXPECT_EQ(plan["plans"][1]["kv"]["blocks_per_request"], 10778);
  EXPECT_EQ(plan["plans"][1]["kv"]["kv_tokens"], 9222468);
}

TEST_F(Cli, KeysPrintsCountsFirst) {
  const Ran ran = warmgate({"keys", source_path(kZero).string(), "--variant", "A-lenient"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("BuildPrefillChunkMetadata 36 warmed, 12 invalid"));
  EXPECT_THAT(ran.out, HasSubstr("CombineTopkSwaIndices 12 warmed, 0 invalid"));
  EXPECT_THAT(ran.out, HasSubstr("sm_120a"));
  EXPECT_LT(ran.out.find("36 warmed"), ran.out.find("reachable  launched"));
  const Ran json = warmgate({"keys", source_path(kZero).string(), "--variant", "B", "--json", "-"});
  const auto keys = nlohmann::json::parse(json.out);
  EXPECT_EQ(keys["schema"], "keys/1.0");
  for (const auto& kernel : keys["variants"][0]["kernels"]) EXPECT_EQ(kernel["invalid"], 0);
}

TEST_F(Cli, ResolveNamesTheOrigin) {
  const Ran ran =
      warmgate({"resolve", small_, "--variant", "good", "--set", "limits.max_num_seqs=7"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("limits.max_model_len: 4096"));
  EXPECT_THAT(ran.out, HasSubstr("small.yaml:5"));
  EXPECT_THAT(ran.out, HasSubstr("limits.max_num_seqs: 7"));
  EXPECT_THAT(ran.out, HasSubstr("--set"));
  EXPECT_TRUE(nlohmann::json::accept(warmgate({"resolve", small_, "--json", "-"}).out));
}

TEST_F(Cli, ResolveShowsWhatAServerIsStartedWith) {
  const Ran ran =
      warmgate({"resolve", source_path("scenarios/servers/standin-healthy.yaml").string()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("preset: \"standin\""));
  EXPECT_THAT(ran.out, HasSubstr("members: "));
}

TEST_F(Cli, SchemaAndDoctor) {
  const Ran schema = warmgate({"schema"});
  EXPECT_EQ(schema.code, 0);
  EXPECT_TRUE(nlohmann::json::parse(schema.out).contains("$schema"));
  const Ran doctor = warmgate({"doctor", "--json", "-"});
  EXPECT_EQ(doctor.code, 0) << doctor.err;
  EXPECT_FALSE(nlohmann::json::parse(doctor.out)["capabilities"].empty());
}

TEST_F(Cli, DoctorOfATarget) {
  const Ran table = warmgate({"doctor", "--target", "vllm"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("vllm (vLLM)"), HasSubstr("code-ready"), HasSubstr("--probe spans")));
  const Ran ran = warmgate({"doctor", "--target", "standin", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["schema"], "doctor-target/1.0");
  EXPECT_EQ(json["preset"], "standin");
  for (const auto& row : json["contracts"]) {
    EXPECT_EQ(row["channels"].size(), json["channels"].size()) << row["contract"];
  }
  const Ran unknown = warmgate({"doctor", "--target", "vlm"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean vllm"));
}

TEST_F(Cli, AcceptWritesTheSets) {
  const Ran ran = warmgate({"accept", small_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const fs::path accepted = dir_.path() / "small.accepted.json";
  EXPECT_EQ(nlohmann::json::parse(slurp(accepted))["schema"], "accepted/1.0");
  EXPECT_EQ(warmgate({"run", small_}).code, 0);
}

TEST_F(Cli, SecretsOfTheEnvironmentAreInNoReport) {
  const std::string file =
      dir_.write("liar.yaml", worker_scenario("worker_liar", "--mode, secrets")).string();
  const fs::path xml = dir_.path() / "out.xml";
  const Ran ran = warmgate({"run", file, "--json", "-", "--junit", xml.string(), "-v"},
                           {{"FIXTURE_TOKEN", "hunter2-very-secret"}});
  EXPECT_THAT(ran.out, HasSubstr("report/1.1"));
  for (const std::string& text : {ran.out, ran.err, slurp(xml)})
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace warmgate::cli
