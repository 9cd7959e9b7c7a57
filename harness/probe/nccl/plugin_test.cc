// The plugin as it is shipped, driven by a program that plays NCCL: what it says through each
// version of the interface, and that its host ends as if nobody had asked.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/trace/event.h"

namespace warmgate::probe::nccl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

fs::path built(const char* what) {
  return fs::path(std::getenv("WARMGATE_BIN_DIR")).parent_path() / what;
}

class Plugin : public ::testing::Test {
 protected:
  Plugin() {
    std::string pattern = (fs::temp_directory_path() / "warmgate-nccl-test-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Plugin() override { fs::remove_all(folder_); }

  // The exit code of the host, 1000 and the signal that ended it.
  int host(int version, const std::string& story, std::uint64_t n = 0, bool listened = true) {
    std::vector<std::string> argv = {(built("bin") / "probe_fake_nccl").string(),
                                     (built("lib") / "libwarmgate_nccl.so").string(),
                                     std::to_string(version), story, std::to_string(n)};
    std::vector<std::string> env = {"PATH=/usr/bin:/bin"};
    if (listened) env.push_back("WARMGATE_EVENTS_DIR=" + folder_.string());
    std::vector<char*> args, variables;
    for (std::string& each : argv) args.push_back(each.data());
    for (std::string& each : env) variables.push_back(each.data());
    args.push_back(nullptr);
    variables.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "out").c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = 0;
    const int failed =
        ::posix_spawn(&pid, args[0], &actions, nullptr, args.data(), variables.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return -1;
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string text_of(const fs::path& path) const {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // All lines, then the records that are written in place; half ones are left out, as the harness
  // does.
  trace::Trace trace() const {
    trace::Trace out;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".jsonl") continue;
      trace::LineReader reader(entry.path().filename(), out);
      reader.feed(text_of(entry.path()));
      reader.finish();
    }
    return out;
  }
  std::vector<trace::Event> last() const {
    std::vector<trace::Event> out;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".last") continue;
      std::stringstream text(text_of(entry.path()));
      for (std::string line; std::getline(text, line);) {
        line.erase(0, line.find_first_not_of('\0'));
        if (!line.empty()) out.push_back(trace::parse_event(line));
      }
    }
    return out;
  }
  // The newest record of the communicator whose name begins so.
  trace::Event newest(const std::string& name) const {
    trace::Event out;
    const auto steps = [](const trace::Event& e) { return e.num("entered") + e.num("launched"); };
    for (trace::Event& each : last()) {
      if (each.str("communicator").rfind(name, 0) == 0 && steps(each) >= steps(out))
        out = std::move(each);
    }
    return out;
  }

  fs::path folder_;
};

std::vector<std::string> said(const trace::Trace& trace) {
  std::vector<std::string> out;
  for (const trace::Event& e : trace.events) {
    std::string line(e.ev);
    if (e.ev == "collective" || e.ev == "p2p") {
      line += " " + e.str("communicator").substr(0, 2) + " " + e.str("kind") + " " +
              std::to_string(e.num("elements")) + " " + e.str("type") + " " +
              std::to_string(e.num("bytes"));
    }
    if (e.ev != "counter") out.push_back(line);
  }
  return out;
}

class EachVersion : public Plugin, public ::testing::WithParamInterface<int> {};

TEST_P(EachVersion, SaysWhatIsEnteredOnWhichCommunicatorByWhichMember) {
  const int version = GetParam();
  ASSERT_EQ(host(version, "plain"), 0);
  const trace::Trace t = trace();
  EXPECT_THAT(t.bad_lines, IsEmpty());
  std::vector<std::string> all = said(t);
  // From v4 on a communicator is known when it is made, before when it is first used.
  all.erase(std::remove(all.begin(), all.end(), "communicator"), all.end());
  EXPECT_THAT(
      all, ElementsAre("hello", "collective wo AllReduce 1024 float32 4096",
                       "collective tp AllGather 10 bfloat16 20",
                       "collective wo AllReduce 4 float32 16", "p2p tp Send 7 float32 28", "bye"));
  const auto made = t.of("communicator");
  ASSERT_EQ(made.size(), 3u) << "two made, one left";
  EXPECT_EQ(made[0]->str("communicator"), "world@0000000000abcdef");
  EXPECT_EQ(made[0]->str("name"), "world");
  EXPECT_EQ(made[0]->num("member"), 1);
  EXPECT_EQ(made[0]->num("api"), version);
  EXPECT_EQ(made[0]->num("ranks", -1), version >= 4 ? 2 : -1) << "not said is not 0";
  EXPECT_EQ(made[2]->str("status"), "gone");
  for (const trace::Event* each : t.of("collective")) {
    EXPECT_EQ(each->src, "nccl");
    EXPECT_EQ(each->num("pid"), t.events[0].num("pid"));
    EXPECT_EQ(each->str("algorithm"), version >= 5 ? "" : "RING");
    EXPECT_EQ(each->str("protocol"), version >= 5 ? "" : "SIMPLE");
  }
  EXPECT_EQ(t.of("collective")[2]->num("op"), 1) << "counted by communicator";
  EXPECT_EQ(t.of("collective")[1]->num("member"), 0);
  EXPECT_EQ(t.of("p2p")[0]->num("peer"), 3);
  EXPECT_THAT(t.events[0].strings("emits"), ElementsAre("communicator", "collective", "p2p"));
  EXPECT_EQ(newest("world").num("entered"), 2);
  EXPECT_EQ(newest("world").num("bytes"), 16);
  EXPECT_EQ(newest("world").num("launched"), version >= 5 ? 2 : 0);
}

TEST_P(EachVersion, AsksForCollectivesAndPointToPointOnly) {
  ASSERT_EQ(host(GetParam(), "mask"), 0);
  EXPECT_EQ(text_of(folder_ / "out"), GetParam() >= 5 ? "1542 1\n" : "6 1\n");
}

TEST_P(EachVersion, SurvivesWhateverItIsGiven) {
  ASSERT_EQ(host(GetParam(), "hostile"), 0);
  const trace::Trace t = trace();
  EXPECT_THAT(t.bad_lines, IsEmpty());
  EXPECT_EQ(t.events.back().ev, "bye");
  std::size_t mine = 0;
  for (const trace::Event* each : t.of("collective")) {
    mine += each->str("communicator").find("@0000000000000002") != std::string::npos;
    EXPECT_LT(each->str("kind").size(), 24u);
  }
  EXPECT_EQ(mine, 1u) << "not before it was its communicator, not after the end";
}

TEST_P(EachVersion, APlainHostWithoutListenersHearsNothing) {
  EXPECT_EQ(host(GetParam(), "plain", 0, false), 0);
  EXPECT_THAT(trace().events, IsEmpty());
  ASSERT_EQ(host(GetParam(), "mask", 0, false), 0);
  EXPECT_EQ(text_of(folder_ / "out"), "0 0\n") << "no event is asked for, no context held";
}

INSTANTIATE_TEST_SUITE_P(Interfaces, EachVersion, ::testing::Values(1, 2, 3, 4, 5));

TEST_F(Plugin, AProcessThatIsKilledHasLeftTheOperationItWasIn) {
  ASSERT_EQ(host(5, "killed", 700), 1000 + SIGKILL);
  const trace::Trace t = trace();
  EXPECT_EQ(t.of("collective").size(), 500u);
  EXPECT_TRUE(t.of("bye").empty());
  const trace::Event last = newest("world");
  EXPECT_EQ(last.num("entered"), 701);
  EXPECT_EQ(last.str("kind"), "ReduceScatter");
  EXPECT_EQ(last.num("elements"), 77);
  EXPECT_EQ(last.num("bytes"), 154);
  EXPECT_TRUE(last.flag("last"));
  ASSERT_EQ(t.of("communicator_state").size(), 1u) << "at 512";
  EXPECT_EQ(t.of("communicator_state")[0]->num("entered"), 512);
}

TEST_F(Plugin, TheDigestIsOfTheOrder) {
  ASSERT_EQ(host(5, "many", 600), 0);
  const std::string one = newest("world").str("digest");
  ASSERT_EQ(host(5, "many", 600), 0);
  for (const trace::Event& each : last()) {
    if (each.num("entered") == 600) {
      EXPECT_EQ(each.str("digest"), one);
    }
  }
  const std::string before = one;
  ASSERT_EQ(host(5, "killed", 599), 1000 + SIGKILL);
  std::size_t others = 0;
  for (const trace::Event& each : last())
    others += each.num("entered") == 600 && each.str("digest") != before;
  EXPECT_GE(others, 1u) << "as many, but others";
}

TEST_F(Plugin, AMillionOperationsAreBounded) {
  ASSERT_EQ(host(4, "many", 1'000'000), 0);
  const trace::Trace t = trace();
  EXPECT_EQ(t.of("collective").size(), 500u);
  EXPECT_EQ(t.of("communicator_state").size(), 11u) << "2^9 to 2^19";
  EXPECT_EQ(newest("world").num("entered"), 1'000'000);
  EXPECT_EQ(t.events.back().ev, "bye");
}

TEST_F(Plugin, ManyThreadsWriteWholeLines) {
  ASSERT_EQ(host(5, "threads", 400), 0);
  const trace::Trace t = trace();
  EXPECT_THAT(t.bad_lines, IsEmpty());
  EXPECT_EQ(t.of("collective").size(), 2000u) << "the bound of a process";
  std::size_t whole = 0;
  for (const trace::Event& each : last())
    whole += each.str("communicator").rfind("each", 0) == 0 && each.num("entered") == 400;
  EXPECT_GE(whole, 8u) << "what has no line any more has its last operation";
}

TEST_F(Plugin, WhatIsCapturedIsEnteredOnceAndMarked) {
  ASSERT_EQ(host(5, "capture"), 0);
  const trace::Trace t = trace();
  ASSERT_EQ(t.of("collective").size(), 2u);
  EXPECT_TRUE(t.of("collective")[0]->flag("in_capture"));
  EXPECT_FALSE(t.of("collective")[1]->flag("in_capture"));
  EXPECT_EQ(newest("world").num("launched"), 1) << "replays are not the host's calls";
}

TEST_F(Plugin, BeforeTheFifthVersionAReplayShowsByItsNumber) {
  ASSERT_EQ(host(4, "again"), 0);
  EXPECT_EQ(trace().of("collective").size(), 3u);
  EXPECT_EQ(newest("world").num("entered"), 3);
}

TEST_F(Plugin, AChildOfAForkIsSilent) {
  ASSERT_EQ(host(5, "fork"), 0);
  const trace::Trace t = trace();
  EXPECT_EQ(t.of("hello").size(), 1u);
  EXPECT_EQ(t.of("collective").size(), 1u);
  EXPECT_EQ(newest("world").num("entered"), 1);
  EXPECT_EQ(t.events.back().ev, "bye");
}

TEST_F(Plugin, AHostThatClosesWhatItFindsAndMayWriteNoFilesLives) {
  ASSERT_EQ(host(5, "daemon"), 0);
  EXPECT_TRUE(trace().of("collective").empty());
}

TEST(Library, ShowsFiveTablesAndNeedsNothingOfOurs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitized library takes the sanitizer from its host";
#endif
  const std::string library = (built("lib") / "libwarmgate_nccl.so").string();
  const std::string command = "nm -D --defined-only '" + library +
                              "' | grep -v ' [aA] ' | awk '{print $NF}' | sort | tr '\\n' ' ';"
                              "readelf -d '" +
                              library + "' | grep -E 'NEEDED|FLAGS_1'";
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  ::pclose(pipe);
  EXPECT_EQ(text.rfind("ncclProfiler_v1 ncclProfiler_v2 ncclProfiler_v3 ncclProfiler_v4 "
                       "ncclProfiler_v5 ",
                       0),
            0u)
      << text;
  EXPECT_EQ(text.find("_v6"), std::string::npos) << text;
  EXPECT_EQ(text.find("libstdc++"), std::string::npos) << text;
  EXPECT_EQ(text.find("libnccl"), std::string::npos) << text;
  EXPECT_EQ(text.find("libcuda"), std::string::npos) << text;
  EXPECT_NE(text.find("NODELETE"), std::string::npos) << text;
}

}  // namespace
}  // namespace warmgate::probe::nccl
