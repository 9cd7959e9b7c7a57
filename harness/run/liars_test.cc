// Every worker that lies, through a scenario file to its outcome; and nothing of it is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using verdict::Outcome;

/// One liar and what a run of it is.
struct Liar {
  std::string mode;
  std::string extra;  // more lines of the scenario's target
  Outcome outcome = Outcome::kCrashed;
  std::string names;     // must stand in the reason: signal, code, contract
  std::string kind;      // "" = any
  std::string contract;  // broken; "" = none asked for
  std::string program;   // "" = worker_liar
};

void PrintTo(const Liar& liar, std::ostream* out) { *out << liar.program << " " << liar.mode; }

const std::string kShort = "    deadlines: {default: 400 ms}\n    silence: 10 s\n";

std::vector<Liar> liars() {
  const Outcome crashed = Outcome::kCrashed, hung = Outcome::kHung, failed = Outcome::kFailed,
                passed = Outcome::kPassed;
  return {
      {"sigsegv", "", crashed, "SIGSEGV", "signal", "starts", ""},
      {"abort", "", crashed, "SIGABRT", "signal", "", ""},
      {"assert", "", crashed, "SIGABRT", "assert", "", ""},
      {"sigkill", "", crashed, "SIGKILL", "", "", ""},
      {"exit3", "", crashed, "3", "exit", "starts", ""},
      {"exit9", "", crashed, "9", "exit", "", ""},
      {"exit127", "", crashed, "127", "exit", "", ""},
      {"before-hello", "", crashed, "127", "", "", ""},
      {"grandchild-mid-line", "", crashed, "", "", "", ""},
      {"hang-heartbeat", kShort, hung, "deadline", "deadline", "", ""},
      {"hang-silent", "    deadlines: {default: 10 s}\n    silence: 400 ms\n", hung, "silen",
       "silence", "", ""},
      {"ignore-sigterm", kShort, hung, "", "deadline", "", ""},
      {"own-group", kShort, hung, "", "deadline", "", ""},
      {"memory-hog", "    memory: 1 GiB\n", crashed, "", "oom", "", ""},
      {"garbage", "", failed, "protocol", "", "protocol", ""},
      {"half-line", "", failed, "protocol", "", "protocol", ""},
      {"long-line", "", failed, "protocol", "", "protocol", ""},
      {"event-flood", "", failed, "protocol", "", "protocol", ""},
      {"closed-channel", "", failed, "protocol", "", "protocol", ""},
      {"no-bye", "", failed, "protocol", "", "protocol", ""},
      {"out-of-order", "", failed, "protocol", "", "protocol", ""},
      {"ready-early", "", failed, "ready-honest", "", "ready-honest", ""},
      {"daemon", "", failed, "nothing-left-behind", "", "nothing-left-behind", ""},
      {"daemon-nameless", "", failed, "nothing-left-behind", "", "nothing-left-behind", ""},
      {"leave-file", "", failed, "nothing-left-behind", "", "nothing-left-behind", ""},
      {"slow-child", "", passed, "", "", "", ""},
      {"many-children", "", passed, "", "", "", ""},
      {"much-output", "", passed, "", "", "", ""},
      {"well", "", passed, "", "", "", "python_tree"},
      {"crash-core", "", crashed, "", "", "", "python_tree"},
      {"crash-worker", "", crashed, "worker 1 died, exit code -11", "", "", "python_tree"},
      {"hang", "    deadlines: {default: 1 s}\n", hung, "profile", "deadline", "", "python_tree"},
      {"orphan", "", crashed, "5", "", "", "python_tree"},
  };
}

// Processes whose environment names this test's folder: whatever a run started, however it was
// detached, carries it (but for those that wiped it, which are found by their stdout).
std::set<std::string> left_behind(const fs::path& mark) {
  std::set<std::string> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/proc", failed)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name == std::to_string(::getpid())) continue;
    std::ifstream in(entry.path() / "environ");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    if (text.find(mark.string()) == std::string::npos) continue;
    std::ifstream command(entry.path() / "cmdline");
    out.insert(name + " " + std::string((std::istreambuf_iterator<char>(command)), {}));
  }
  return out;
}

class Liars : public Product, public ::testing::WithParamInterface<Liar> {
 protected:
  fs::path scenario(const Liar& liar) {
    const std::string argv =
        liar.program == "python_tree"
            ? "[python3, " + (source_dir() / "fixtures/workers/python_tree.py").string()
            : "[" + worker("liar");
    return put("liar.yaml",
               "scenario: liar\nabout: A worker that lies.\ntarget:\n  command:\n    argv: " +
                   argv + ", --mode, " + liar.mode + "]\n" + liar.extra);
  }
};

TEST_P(Liars, GetsItsOutcomeAndLeavesNothing) {
  const Liar& liar = GetParam();
#ifdef __SANITIZE_ADDRESS__
  // The sanitizer's shadow takes terabytes of address space: under the limit no worker starts.
  if (std::string_view(liar.mode) == "memory-hog") GTEST_SKIP() << "no address-space limit here";
#endif
  options_.grace_s = 0.3;
  options_.settle_s = 0.5;
  const verdict::RunRecord run = run_one(scenario(liar));
  EXPECT_EQ(verdict::to_string(run.outcome), verdict::to_string(liar.outcome)) << story(run);
  EXPECT_THAT(run.reason, HasSubstr(liar.names)) << story(run);
  if (!liar.kind.empty()) {
    EXPECT_EQ(run.kind, liar.kind) << story(run);
  }
  if (!liar.contract.empty()) {
    EXPECT_THAT(broken(run), Contains(liar.contract)) << story(run);
  }
  if (liar.mode == "ignore-sigterm") {
    ASSERT_FALSE(run.workers.empty());
    EXPECT_TRUE(run.workers[0].needed_sigkill);
  }
  if (liar.outcome != Outcome::kPassed) {
    EXPECT_TRUE(run.fingerprint);
    EXPECT_EQ(last_.verdict, verdict::Verdict::kFail);
    EXPECT_THAT(run.reproduce, HasSubstr("liar.yaml"));
  } else {
    EXPECT_EQ(last_.verdict, verdict::Verdict::kPass);
  }
  EXPECT_THAT(left_behind(dir_.path()), ::testing::IsEmpty());
}

std::string name_of(const ::testing::TestParamInfo<Liar>& info) {
  std::string out;
  for (const char c : info.param.program + "_" + info.param.mode) out += c == '-' ? '_' : c;
  return out.substr(info.param.program.empty() ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(All, Liars, ::testing::ValuesIn(liars()), name_of);

TEST_F(Liars, TheSecretIsNowhereInTheRecord) {
  ::setenv("FIXTURE_TOKEN", "hf_abcdefghijklmnop", 1);
  const verdict::RunRecord run =
      run_one(scenario({"secrets", "", Outcome::kPassed, "", "", "", ""}));
  ::unsetenv("FIXTURE_TOKEN");
  std::string all = run.reason + run.environment.dump();
  for (const auto& output : run.outputs) {
    all += output.head + output.tail;
    for (const auto& line : output.matched) all += line;
  }
  for (const auto& event : run.trace.events) all += event.body.to_json().dump();
  for (const auto& result : run.contracts) {
    for (const auto& finding : result.findings) all += finding.message + finding.seen + finding.key;
  }
  EXPECT_THAT(all, ::testing::Not(HasSubstr("hf_abcdefghijklmnop")));
  EXPECT_THAT(all, HasSubstr("[secret]"));
}

TEST_F(Liars, ACancelEndsTheRunAndStillSaysWhatWasSeen) {
  const fs::path file =
      scenario({"hang-silent", "    deadlines: {default: 60 s}\n", Outcome::kHung, "", "", "", ""});
  const std::jthread user([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancel_.cancel();
  });
  const auto start = std::chrono::steady_clock::now();
  const GateResult result = run({file});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
  EXPECT_TRUE(result.interrupted);
  const verdict::RunRecord& run = result.scenarios[0].variants[0].runs[0];
  EXPECT_FALSE(run.trace.of("phase_begin").empty());
  EXPECT_EQ(run.outcome, Outcome::kInfra) << story(run);
  EXPECT_THAT(left_behind(dir_.path()), ::testing::IsEmpty());
}

TEST_F(Liars, TheTimeoutIsOverAllPhases) {
  options_.timeout_s = 0.5;
  const verdict::RunRecord run = run_one(scenario({"circles", "", Outcome::kHung, "", "", "", ""}));
  EXPECT_EQ(run.outcome, Outcome::kHung) << story(run);
  EXPECT_LT(run.wall_s, 10);
}

TEST_F(Liars, SeveralAtOnceStayApart) {
  std::vector<fs::path> files;
  for (const char* mode :
       {"sigsegv", "exit3", "daemon", "slow-child", "garbage", "daemon-nameless"}) {
    files.push_back(put(std::string(mode) + ".yaml",
                        "scenario: " + std::string(mode) +
                            "\nabout: One of many.\ntarget:\n  command:\n    argv: [" +
                            worker("liar") + ", --mode, " + mode + "]\n"));
  }
  options_.jobs = 6;
  options_.repeat = 3;
  const GateResult result = run(files);
  const Outcome wanted[] = {Outcome::kCrashed, Outcome::kCrashed, Outcome::kFailed,
                            Outcome::kPassed,  Outcome::kFailed,  Outcome::kFailed};
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const verdict::RunRecord& run : result.scenarios[i].variants[0].runs) {
      EXPECT_EQ(verdict::to_string(run.outcome), verdict::to_string(wanted[i]))
          << files[i] << " " << story(run);
      EXPECT_TRUE(run.time_disturbed);
    }
  }
  EXPECT_THAT(left_behind(dir_.path()), ::testing::IsEmpty());
}

}  // namespace
}  // namespace warmgate::run::testing
