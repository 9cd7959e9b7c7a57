// Servers through a scenario file to their outcome: what starts, what lies, what is left.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "harness/run/server.h"
#include "harness/run/testing.h"
#include "harness/target/fd.h"
#include "harness/verdict/figures.h"

namespace warmgate::run::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using verdict::Outcome;
using verdict::RunRecord;

class ServerRuns : public Product {
 protected:
  static std::string small() {
    return (source_dir() / "fixtures/workers/small_server.py").string();
  }

  static std::string command(const std::string& more = "") {
    return "[python3, " + small() + ", --port, \"{port}\"" + (more.empty() ? "" : ", " + more) +
           "]";
  }
  std::string yaml(const std::string& server) {
    return "scenario: s\ntarget:\n  server:\n" + server +
           "workload: {requests: 3, prompt_tokens: 4, output_tokens: 3}\n";
  }
  RunRecord run_server(const std::string& server) { return run_one(put("s.yaml", yaml(server))); }
  RunRecord lie(const std::string& lies, const std::string& more = "") {
    return run_server("    command: " + command(lies) + "\n" + more);
  }
  static const contract::Result& judged(const RunRecord& run, const std::string& name) {
    const contract::Result* result = verdict::find_result(run, name);
    EXPECT_NE(result, nullptr) << name;
    static const contract::Result none;
    return result ? *result : none;
  }
  static std::string why(const RunRecord& run) {
    std::string out = run.reason;
    for (const contract::Result& result : run.contracts) {
      for (const auto& finding : result.findings)
        out += "\n" + result.contract + ": " + finding.message;
    }
    return out;
  }
  static double time_of(const RunRecord& run, const std::string& clock) {
    for (const trace::Event* event : run.trace.of("ready")) {
      if (event->str("clock") == clock) return static_cast<double>(event->t_ns);
    }
    return -1;
  }
};

TEST_F(ServerRuns, OneThatIsWell) {
  const RunRecord run = lie("");
  EXPECT_EQ(run.outcome, Outcome::kPassed) << why(run);
  EXPECT_EQ(run.figures.at("requests_ok"), 3) << why(run);
  EXPECT_EQ(run.figures.at("output_tokens"), 9);
  for (const char* figure :
       {"time_to_port_s", "time_to_health_s", "time_to_models_s", "time_to_first_token_s",
        "time_to_ready_s", "ttft_first_ms", "ttft_third_ms", "serve_s"}) {
    EXPECT_TRUE(run.figures.count(figure)) << figure;
  }
  // Each clock by itself, and in this order.
  EXPECT_LT(time_of(run, "process"), time_of(run, "port"));
  EXPECT_LE(time_of(run, "port"), time_of(run, "health"));
  EXPECT_LT(time_of(run, "health"), time_of(run, "first_token"));
  EXPECT_DOUBLE_EQ(run.figures.at("time_to_ready_s"), run.figures.at("time_to_health_s"));
  EXPECT_EQ(judged(run, "ready-honest").state, contract::State::kKept);
  EXPECT_EQ(judged(run, "nothing-left-behind").state, contract::State::kKept);
  EXPECT_EQ(judged(run, "protocol").state, contract::State::kNotApplicable);
  EXPECT_EQ(judged(run, "workspace-fits").state, contract::State::kNotObserved);
  EXPECT_TRUE(run.workers.at(0).killed_by_us);
  EXPECT_FALSE(run.workers.at(0).needed_sigkill);
}

TEST_F(ServerRuns, HealthThatSaysReadyTooEarly) {
  const RunRecord run = lie("--lie, health-early, --load-ms, \"250\"");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << why(run);
  EXPECT_EQ(judged(run, "ready-honest").state, contract::State::kBroken);
  EXPECT_THAT(why(run), AllOf(HasSubstr("the first request got HTTP 503"), HasSubstr("s later")));
  // Once it can, it is asked again: the figures are those of a server that serves.
  EXPECT_EQ(run.figures.at("requests_ok"), 3);
  EXPECT_EQ(run.figures.at("requests_failed"), 3);
}

TEST_F(ServerRuns, CrashWhileLoading) {
  const RunRecord run = lie("--lie, crash");
  EXPECT_EQ(run.outcome, Outcome::kCrashed) << why(run);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_FALSE(run.figures.count("time_to_health_s"));
  EXPECT_EQ(judged(run, "ready-honest").state, contract::State::kNotObserved);
}

TEST_F(ServerRuns, AnEndWithZeroIsACrashWhileThereIsWork) {
  for (const char* when : {"exit0", "exit0-serving"}) {
    const RunRecord run = lie(std::string("--lie, ") + when);
    EXPECT_EQ(run.outcome, Outcome::kCrashed) << when << ": " << why(run);
    EXPECT_THAT(run.reason, HasSubstr("before its work was done"));
    EXPECT_EQ(run.exit_code, 0);
  }
}

TEST_F(ServerRuns, HangWhileLoading) {
  const RunRecord run = lie("--lie, hang", "    deadlines: {default: 400 ms}\n");
  EXPECT_EQ(run.outcome, Outcome::kHung) << why(run);
  EXPECT_EQ(run.kind, "deadline");
  EXPECT_FALSE(run.figures.count("time_to_health_s"));
}

TEST_F(ServerRuns, HealthThatAnswersWronglyForEverIsNamed) {
  const RunRecord run =
      lie("--lie, health-redirect", "    deadlines: {default: 600 ms}\n    silence: 400 ms\n");
  EXPECT_EQ(run.outcome, Outcome::kHung) << why(run);
  // On a machine that is busy elsewhere it may be asked but once.
  EXPECT_THAT(run.reason, ContainsRegex("GET /health was asked (once|[0-9]+ times) and never "
                                        "answered 200, last: HTTP 302, a redirect, which is not "
                                        "followed"));
}

TEST_F(ServerRuns, OneThatIgnoresSigtermIsKilled) {
  options_.grace_s = 0.2;
  const RunRecord run = lie("--lie, ignore-sigterm");
  EXPECT_EQ(run.outcome, Outcome::kPassed) << why(run);
  EXPECT_TRUE(run.workers.at(0).needed_sigkill);
}

TEST_F(ServerRuns, WhatOutlivesSigtermIsNamed) {
  options_.settle_s = 0.2;
  const RunRecord run = lie("--lie, leave-child");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << why(run);
  EXPECT_EQ(judged(run, "nothing-left-behind").state, contract::State::kBroken);
  EXPECT_THAT(why(run), HasSubstr("sleep"));
}

TEST_F(ServerRuns, ASecondRequestThatIsWorseThanTheThird) {
  const RunRecord run = lie("--lie, slow-second");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << why(run);
  EXPECT_THAT(why(run), HasSubstr("it was not warm when it said ready"));
}

TEST_F(ServerRuns, RequestsThatAreRefusedForGood) {
  const RunRecord run = lie("--lie, bad-request");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << why(run);
  EXPECT_EQ(run.phase, "serve");
  EXPECT_THAT(why(run), AllOf(HasSubstr("3 of 3 requests failed"), HasSubstr("400")));
  EXPECT_EQ(judged(run, "ready-honest").state, contract::State::kKept);
}

// A client of work that lives elsewhere: killing it is not enough.
TEST_F(ServerRuns, StopEndsWhatAKilledPrefixLeaves) {
  const fs::path pid_file = dir_.path() / "work.pid";
  const fs::path stop = script("stop.sh", "#!/bin/sh\nkill \"$(cat \"$1\")\"\n");
  const RunRecord run = lie("--lie, detached, --stop, " + pid_file.string(),
                            "    stop: [" + stop.string() + ", " + pid_file.string() + "]\n");
  EXPECT_EQ(run.outcome, Outcome::kPassed) << why(run);
  const auto stops = run.trace.of("stop");
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0]->num("exit_code", -1), 0);
  std::ifstream in(pid_file);
  int pid = 0;
  in >> pid;
  ASSERT_GT(pid, 0);
  ::waitpid(pid, nullptr, WNOHANG);  // it fell to us, if it outlived the prefix by a moment
  EXPECT_NE(::kill(pid, 0), 0);  // gone, though it had left the group, the session and our marker
}

TEST_F(ServerRuns, AStopThatHangsIsEndedAtItsDeadline) {
  const RunRecord run = lie("", "    stop: [sleep, \"60\"]\n    stop_deadline: 200 ms\n");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << why(run);
  EXPECT_THAT(run.reason, HasSubstr("the stop command: it did not end in time"));
  ASSERT_EQ(run.trace.of("stop").size(), 1u);
  EXPECT_TRUE(run.trace.of("stop")[0]->flag("timed_out"));
}

// What it was to end may well go on, in a container that nobody sees from here.
TEST_F(ServerRuns, AStopThatCannotRunIsNamed) {
  const RunRecord run = lie("", "    stop: [no-such-program-anywhere]\n");
  EXPECT_EQ(run.outcome, Outcome::kFailed) << why(run);
  EXPECT_THAT(run.reason, HasSubstr("the stop command: "));
  EXPECT_THAT(run.reason, HasSubstr("no-such-program-anywhere"));
  EXPECT_EQ(lie("", "    stop: [\"false\"]\n").outcome, Outcome::kPassed);
}

TEST_F(ServerRuns, TheFirstOfSeveralMembersThatDiesIsNamedAndAllEnd) {
  const RunRecord run = run_server(
      "    members:\n"
      "      front: {command: " +
      command("--load-ms, \"5000\"") +
      "}\n"
      "      back: {command: " +
      command("--lie, crash") +
      "}\n"
      "    ask: front\n");
  EXPECT_EQ(run.outcome, Outcome::kCrashed) << why(run);
  EXPECT_EQ(run.first_failed_rank, 1);
  ASSERT_EQ(run.workers.size(), 2u);
  EXPECT_TRUE(run.workers[0].killed_by_us);
  EXPECT_FALSE(run.workers[1].killed_by_us);
}

// The one that is asked is up long before the other, and is asked nothing until that is up too.
TEST_F(ServerRuns, SeveralMembersAreReadyWhenTheLastOneIs) {
  const RunRecord run = run_server(
      "    members:\n"
      "      back: {command: " +
      command("--load-ms, \"500\"") +
      "}\n"
      "      front: {command: " +
      command("--load-ms, \"1\"") +
      "}\n"
      "    ask: front\n");
  ASSERT_EQ(run.outcome, Outcome::kPassed) << why(run);
  std::map<int, std::int64_t> healthy;
  for (const trace::Event* event : run.trace.of("ready"))
    if (event->str("clock") == "health") healthy[event->rank.value_or(-1)] = event->t_ns;
  ASSERT_EQ(healthy.size(), 2u);
  ASSERT_LT(healthy.at(1), healthy.at(0));
  std::size_t served = 0;
  for (const trace::Event* event : run.trace.of("phase_begin")) {
    if (event->str("phase") != "serve") continue;
    ++served;
    EXPECT_GE(event->t_ns, healthy.at(0));
  }
  EXPECT_EQ(served, 1u);
  EXPECT_GE(run.figures.at("time_to_ready_s"), 0.5);
}

TEST_F(ServerRuns, MembersKnowEachOthersPorts) {
  const RunRecord run = run_server(
      "    members:\n"
      "      back: {command: " +
      command() +
      "}\n"
      "      other: {command: [sleep, \"30\"], port: none, env: {PEER: \"{port:back}\"}}\n");
  EXPECT_EQ(run.outcome, Outcome::kPassed) << why(run);
  EXPECT_EQ(run.workers.size(), 2u);
}

TEST_F(ServerRuns, ABusyPortIsASetUpFindingThatNamesWhoListens) {
  const target::Fd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  ::getsockname(other.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const RunRecord run = run_server("    command: " + command() + "\n    port: " + port + "\n");
  EXPECT_EQ(run.outcome, Outcome::kInfra);
  EXPECT_THAT(run.reason, AllOf(HasSubstr("port " + port + " of server is taken by pid "),
                                HasSubstr("warmgate_run_test")));
  EXPECT_THAT(run.workers, IsEmpty());  // nothing was started
}

TEST_F(ServerRuns, WhatIsMissingIsNamedBeforeAnythingStarts) {
  const auto reason = [&](const std::string& server) {
    const RunRecord run = run_server(server);
    EXPECT_EQ(run.outcome, Outcome::kInfra) << server;
    EXPECT_THAT(run.workers, IsEmpty());
    return run.reason;
  };
  EXPECT_THAT(reason("    command: [no-such-program, \"{port}\"]\n"),
              HasSubstr("the program no-such-program is missing: it is in no folder of PATH"));
  EXPECT_THAT(reason("    command: [./nothing, \"{port}\"]\n"), HasSubstr("/nothing is missing"));
  EXPECT_THAT(reason("    command: [python3, \"{port}\", \"{model}\"]\n    model: ./no.gguf\n"),
              AllOf(HasSubstr("the model is missing: "), HasSubstr("/no.gguf")));
  EXPECT_THAT(reason("    command: " + command() + "\n    cwd: nowhere\n"),
              HasSubstr("/nowhere is missing"));
  EXPECT_THAT(reason("    preset: vllm\n    model: nobody/nothing-7b\n"
                     "    env: {HF_HOME: " +
                     dir_.path().string() + "}\n"),
              AllOf(HasSubstr("nobody/nothing-7b is no path and was not downloaded"),
                    HasSubstr("models--nobody--nothing-7b")));
}

TEST_F(ServerRuns, WhatThePresetDoesNotKnowIsAProblemOfTheScenario) {
  const auto problem = [&](const std::string& text) -> std::string {
    try {
      (void)run({put("s.yaml", text)});
      return "";
    } catch (const scenario::ScenarioError& error) {
      return error.what();
    }
  };
  const std::string head = "scenario: s\ntarget: {server: {preset: llamacpp, model: ./m, ";
  EXPECT_THAT(problem(head + "cache: {cud: cold}}}\n"),
              AllOf(HasSubstr("s.yaml:2:"), HasSubstr("did you mean cuda?")));
  EXPECT_THAT(problem(head + "with: [weightless]}}\n"),
              HasSubstr("preset llamacpp has no switches for weightless"));
  EXPECT_THAT(problem(head + "requests: {adapter: a}}}\nworkload: {requests: 1, prompt_tokens: 1, "
                             "output_tokens: 1, class: adapter}\n"),
              HasSubstr("preset llamacpp cannot ask for class 'adapter'"));
  EXPECT_THAT(problem(head + "log: vlm}}\n"), HasSubstr("no log grammar 'vlm'"));
  EXPECT_THAT(problem("scenario: s\ntarget: {server: {preset: llamacpp}}\n"),
              HasSubstr("needs one"));
  EXPECT_THAT(problem("scenario: s\ntarget: {server: {preset: openai, model: m}}\n"),
              HasSubstr("preset openai knows no command"));
}

TEST(FillIn, OnlyWhatIsKnown) {
  const std::map<std::string, std::string> values = {{"port", "80"}, {"port:a", "81"}};
  EXPECT_EQ(fill_in("x{port}y{port:a}{host}", values), "x80y81{host}");
  EXPECT_EQ(fill_in("{\"a\": {\"port\": 1}}", values), "{\"a\": {\"port\": 1}}");
  EXPECT_EQ(fill_in("{{port}}", values), "{80}");
  EXPECT_EQ(fill_in("{port", values), "{port");
  EXPECT_EQ(fill_in("", values), "");
}

TEST(FindModel, PathsAndIds) {
  const std::vector<std::string> places = {"$HUB/models--{model}"};
  const fs::path home = source_dir() / "fixtures";
  EXPECT_EQ(find_model("models", home, {}, true, {}), (home / "models").string());
  EXPECT_EQ(find_model("", home, places, true, {}), "");
  EXPECT_EQ(find_model("a/b", home, places, false, {}), "a/b");
  EXPECT_THROW(find_model("a/b", home, places, true, {{"HUB", "/nowhere"}}), std::runtime_error);
  EXPECT_THROW(find_model("./a", home, places, false, {}), std::runtime_error);
}

}  // namespace
}  // namespace warmgate::run::testing
