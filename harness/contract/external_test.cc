#include "harness/contract/external.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "harness/contract/subprocess.h"
#include "harness/contract/test_trace.h"
#include "harness/scenario/scenario.h"

namespace warmgate::contract {
namespace {

using namespace testing;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

class External : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wg-external-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  Result judge(const std::string& script, milliseconds deadline = milliseconds(5000)) {
    const TraceBuilder t = good_end();
    return judge_external({"mine", {"/bin/sh", "-c", script}, {"phase_end"}, deadline},
                          Context{t, nullptr});
  }
  fs::path write(const std::string& name, const std::string& text) {
    const fs::path path = dir_ / name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0755);
    return path;
  }

  fs::path dir_;
};

TEST_F(External, SilenceWithCodeZeroIsKept) {
  EXPECT_EQ(judge("cat >/dev/null").state, State::kKept);
}

TEST_F(External, GetsEveryEventOnStdin) {
  const TraceBuilder t = good_end();
  const trace::Trace& trace = t;
  const Result result = judge("n=$(wc -l); echo '{\"expected\":\"0\",\"seen\":\"'$n'\"}'");
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].seen, std::to_string(trace.events.size()));
  EXPECT_EQ(result.findings[0].contract, "mine");
}

TEST_F(External, FindingsNotesAndHostileFields) {
  const Result result = judge(
      "cat >/dev/null; "
      "echo "
      "'{\"key\":\"k\",\"message\":\"m\",\"rank\":1,\"layer\":3,\"count\":2,\"events\":[0,999999]}'"
      ";"
      "echo; echo "
      "'{\"key\":7,\"rank\":\"x\",\"layer\":1e99,\"count\":-1,\"events\":\"no\",\"message\":[1]}';"
      "echo '{\"note\":true,\"message\":\"n\"}'");
  ASSERT_EQ(result.state, State::kBroken);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].events, std::vector<std::size_t>{0});
  EXPECT_EQ(result.findings[0].count, 2u);
  EXPECT_EQ(result.findings[1].rank, -1);
  EXPECT_EQ(result.findings[1].layer, -1);
  EXPECT_EQ(result.findings[1].count, 1u);
  ASSERT_EQ(result.notes.size(), 1u);
}

TEST_F(External, NeverKeptIfItDidNotJudge) {
  for (const char* script :
       {"exit 3", "echo '{\"message\":\"x\"}'; exit 1", "kill -SEGV $$", "echo hello", "echo '[1]'",
        "echo '{\"state\":\"fine\"}'", "printf '{\"message\":'"}) {
    const Result result = judge(script);
    EXPECT_EQ(result.state, State::kNotObserved) << script;
    EXPECT_FALSE(result.why.empty()) << script;
    EXPECT_TRUE(result.findings.empty()) << script;
  }
  EXPECT_NE(judge("kill -SEGV $$").why.find("SIGSEGV"), std::string::npos);
  EXPECT_NE(judge("echo broken >&2; exit 3").why.find("code 3: broken"), std::string::npos);
}

TEST_F(External, ItsOwnStates) {
  EXPECT_EQ(judge("echo '{\"state\":\"not_applicable\",\"why\":\"no model\"}'").state,
            State::kNotApplicable);
  EXPECT_EQ(judge("echo '{\"state\":\"not_observed\",\"why\":\"w\"}'").why, "w");
  EXPECT_EQ(judge("echo '{\"state\":\"kept\"}'").state, State::kKept);
}

TEST_F(External, TheWholeGroupDiesAtTheDeadline) {
  const fs::path pid_file = dir_ / "pid";
  const auto start = std::chrono::steady_clock::now();
  const Result result = judge("trap '' TERM; sleep 60 & echo $! > " + pid_file.string() + "; wait",
                              milliseconds(300));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_NE(result.why.find("300 ms"), std::string::npos);
  pid_t child = 0;
  std::ifstream(pid_file) >> child;
  ASSERT_GT(child, 0);
  // The orphan is gone, or a zombie that its new parent has yet to collect.
  bool alive = true;
  for (int i = 0; i < 100 && alive; ++i) {
    std::string stat;
    std::ifstream in("/proc/" + std::to_string(child) + "/stat");
    alive = std::getline(in, stat) && stat.find(") Z ") == std::string::npos;
    if (alive) std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_FALSE(alive);
}

TEST_F(External, TooMuchOutputIsCutOff) {
  const Result result = judge("yes '{\"message\":\"x\"}'");  // would never end
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_NE(result.why.find("more than"), std::string::npos);
  EXPECT_EQ(judge("yes error >&2 & sleep 0.1; kill $!; cat >/dev/null").state, State::kKept);
}

TEST_F(External, OneThatDoesNotReadDoesNotEndUs) {
  trace::Trace big;
  TraceBuilder t = good_end();
  for (int i = 0; i < 20000; ++i) t.add("heartbeat", {{"pad", "xxxxxxxxxxxxxxxxxxxx"}});
  const Result result = judge_external({"mine", {"/bin/sh", "-c", "exec <&-; sleep 0.1"}, {}, {}},
                                       Context{t, nullptr});
  // A deadline of 0 has passed at once; either way SIGPIPE did not kill this test.
  EXPECT_EQ(result.state, State::kNotObserved);
  const Result again =
      judge_external({"mine", {"/bin/sh", "-c", "exec <&-; sleep 0.1"}, {}, milliseconds(5000)},
                     Context{t, nullptr});
  EXPECT_EQ(again.state, State::kKept);
}

TEST_F(External, ClosedOutputsAndABackgroundChild) {
  EXPECT_EQ(judge("exec >&- 2>&-; sleep 0.05").state, State::kKept);
  // The leader ended; a child that holds the pipe must not hold us.
  EXPECT_EQ(judge("sleep 60 & exit 0").state, State::kKept);
}

TEST_F(External, CannotBeStarted) {
  const trace::Trace trace;
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{}, {""}, {"/no/such/program"}, {dir_.string()}}) {
    const Result result =
        judge_external({"mine", argv, {}, milliseconds(1000)}, Context{trace, nullptr});
    EXPECT_EQ(result.state, State::kNotObserved);
    EXPECT_NE(result.why.find("did not start"), std::string::npos) << result.why;
  }
}

TEST_F(External, NeedsAreChecked) {
  TraceBuilder t;
  t.hello(0, {"counter"});
  const Result result =
      judge_external({"mine", {"/bin/true"}, {"kv", "counter"}, {}}, Context{t, nullptr});
  EXPECT_EQ(result.missing, std::vector<std::string>{"kv"});
}

TEST_F(External, InheritsNoDescriptorAndNoBlockedSignal) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  const Finished end = run_helper(
      {"/bin/sh", "-c", "ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status"},
      [] { return std::string(); }, milliseconds(5000), 1000);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out.substr(0, 2), "4\n");  // 0, 1, 2 and ls's own
  EXPECT_NE(end.out.find("0000000000000000"), std::string::npos) << end.out;
}

TEST_F(External, FileIsRead) {
  write("judge.sh", "#!/bin/sh\ncat >/dev/null\necho '{\"key\":\"slow\",\"message\":\"m\"}'\n");
  const auto all = load_external_contracts(
      write("c.yaml", "name: my-own\nargv: [./judge.sh]\nneeds: [phase_end]\ndeadline_s: 2.5\n"));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].deadline, milliseconds(2500));
  const TraceBuilder t = good_end();
  EXPECT_EQ(judge_external(all[0], Context{t, nullptr}).findings.at(0).key, "slow");
}

TEST_F(External, FileErrorsComeAllAtOnce) {
  const fs::path file = write("c.yaml",
                              "- {name: keys-valid, argv: [x]}\n"
                              "- {nmae: b, argv: x, deadline_s: -1}\n- 7\n");
  try {
    (void)load_external_contracts(file);
    FAIL();
  } catch (const scenario::ScenarioError& error) {
    EXPECT_GE(error.problems().size(), 5u);
    EXPECT_EQ(error.problems()[0].line, 1);
    EXPECT_NE(error.problems()[0].text().find("c.yaml:1"), std::string::npos);
  }
  EXPECT_THROW((void)load_external_contracts(dir_ / "none.yaml"), scenario::ScenarioError);
  EXPECT_THROW((void)load_external_contracts(write("d.yaml", "a: [")), scenario::ScenarioError);
}

}  // namespace
}  // namespace warmgate::contract
