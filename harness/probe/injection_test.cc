// The library as it is shipped, in a program that is started for it: what it needs, what it shows,
// and that its host ends as if nobody had asked.
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
#include "harness/trace/wire_calls.h"

namespace warmgate::probe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

fs::path built(const char* what) {
  return fs::path(std::getenv("WARMGATE_BIN_DIR")).parent_path() / what;
}

class Injection : public ::testing::Test {
 protected:
  Injection() {
    std::string pattern = (fs::temp_directory_path() / "warmgate-probe-test-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Injection() override { fs::remove_all(folder_); }

  // The exit code of the host; its events are in traces(), a trace for each file.
  int host(std::vector<std::string> options, bool listened = true,
           std::vector<std::string> more_env = {}) {
    std::vector<std::string> argv = {(built("bin") / "probe_fake_host").string(),
                                     (built("lib") / "libwarmgate_probe.so").string()};
    argv.insert(argv.end(), options.begin(), options.end());
    std::vector<std::string> env = {"PATH=/usr/bin:/bin", "WARMGATE_CUPTI=/nowhere/libcupti.so"};
    if (listened) env.push_back("WARMGATE_EVENTS_DIR=" + folder_.string());
    env.insert(env.end(), more_env.begin(), more_env.end());
    std::vector<char*> args, variables;
    for (std::string& each : argv) args.push_back(each.data());
    for (std::string& each : env) variables.push_back(each.data());
    args.push_back(nullptr);
    variables.push_back(nullptr);
    pid_t pid = 0;
    if (::posix_spawn(&pid, args[0], nullptr, nullptr, args.data(), variables.data()) != 0)
      return -1;
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string fake() const { return (built("lib") / "fake/libcupti.so").string(); }

  std::vector<trace::Trace> traces() const {
    std::vector<trace::Trace> out;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".jsonl") continue;
      std::ifstream in(entry.path());
      std::stringstream text;
      text << in.rdbuf();
      trace::Trace trace;
      trace::LineReader reader("probe", trace);
      reader.feed(text.str());
      reader.finish();
      out.push_back(std::move(trace));
    }
    return out;
  }

  fs::path folder_;
};

std::vector<std::string> kinds(const trace::Trace& trace) {
  std::vector<std::string> out;
  for (const trace::Event& event : trace.events) {
    if (event.ev != "counter") out.push_back(event.ev);
  }
  return out;
}

TEST_F(Injection, SaysWhatADriverDoes) {
  ASSERT_EQ(host({"--cupti", fake(), "--twice"}), 0);
  const auto all = traces();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].bad_lines, IsEmpty());
  EXPECT_THAT(kinds(all[0]), ElementsAre("hello", "probe", "alloc", "bye"));
  EXPECT_EQ(all[0].events[1].str("status"), "attached");
  EXPECT_EQ(all[0].events[1].str("cupti"), fake()) << "the copy that the process has comes first";
  EXPECT_EQ(all[0].events[2].num("bytes"), 4 << 20);
  for (const trace::Event& event : all[0].events) EXPECT_EQ(event.src, "probe");
}

TEST_F(Injection, KeepsTheLastCallForWhoeverComesAfterwards) {
  ASSERT_EQ(host({"--cupti", fake()}), 0);
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (name.rfind(trace::kCallTableFile, 0) != 0) continue;
    trace::CallTableFile table{};
    std::ifstream in(entry.path(), std::ios::binary);
    in.read(reinterpret_cast<char*>(&table), sizeof table);
    ASSERT_EQ(in.gcount(), static_cast<std::streamsize>(sizeof table));
    EXPECT_EQ(name, trace::kCallTableFile + std::to_string(table.head.pid));
    EXPECT_EQ(std::string(table.head.magic, 8), std::string(trace::kCallTableMagic, 8));
    found.emplace_back(table.slots[0].call);
  }
  EXPECT_THAT(found, ElementsAre("cuMemAlloc_v2"));
}

TEST_F(Injection, AnotherSubscriberKeepsItsPlace) {
  ASSERT_EQ(host({"--cupti", fake(), "--first"}), 0);
  const auto all = traces();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(kinds(all[0]), ElementsAre("hello", "probe", "bye"));
  EXPECT_EQ(all[0].events[1].str("status"), "not attached");
  EXPECT_THAT(all[0].events[1].str("reason"), HasSubstr("another tool of this process"));
}

TEST_F(Injection, AChildOfAForkIsSilentAndTheParentGoesOn) {
  ASSERT_EQ(host({"--cupti", fake(), "--fork"}), 0);
  const auto all = traces();
  ASSERT_EQ(all.size(), 1u) << "no file of the child's";
  EXPECT_THAT(kinds(all[0]), ElementsAre("hello", "probe", "alloc", "bye"));
}

TEST_F(Injection, ManyThreadsWriteWholeLines) {
  ASSERT_EQ(host({"--cupti", fake(), "--threads", "8"}), 0);
  const auto all = traces();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].bad_lines, IsEmpty());
  EXPECT_EQ(all[0].of("alloc").size(), 1u + 8 * 50);
}

TEST_F(Injection, AHostThatClosesWhatItFindsKeepsItsOwnFile) {
  const fs::path mine = folder_ / "mine.txt";
  ASSERT_EQ(host({"--cupti", fake(), "--closes", mine.string()}), 0);
  std::ifstream in(mine);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), "mine\n");
}

TEST_F(Injection, AHostThatMayWriteNoFilesLives) {
  ASSERT_EQ(host({"--cupti", fake(), "--no-files"}), 0);
  EXPECT_THAT(kinds(traces().at(0)), ElementsAre("hello", "probe", "alloc"));
}

TEST_F(Injection, WithoutAnybodyWhoListensItDoesNothing) {
  EXPECT_EQ(host({"--cupti", fake()}, false), 0);
  EXPECT_EQ(host({"--cupti", fake()}, false, {"WARMGATE_EVENTS_DIR=/nowhere/at/all"}), 0);
  EXPECT_THAT(traces(), IsEmpty());
}

// A real driver may be there or not, a real CUPTI too: both are one event, and the host ends well.
TEST_F(Injection, WithoutAFakeTheHostEndsWell) {
  ASSERT_EQ(host({}), 0);
  const auto all = traces();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].of("probe").size(), 1u);
  EXPECT_EQ(all[0].events.back().ev, "bye");
}

TEST(Library, ShowsOneFunctionAndNeedsNothingOfOurs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitized library takes the sanitizer from its host";
#endif
  const std::string command = "nm -D --defined-only '" +
                              (built("lib") / "libwarmgate_probe.so").string() +
                              "' | grep -v ' [aA] ' | awk '{print $NF}'; readelf -d '" +
                              (built("lib") / "libwarmgate_probe.so").string() + "' | grep NEEDED";
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  ::pclose(pipe);
  EXPECT_EQ(text.rfind("InitializeInjection\n", 0), 0u) << text;
  EXPECT_EQ(text.find("libstdc++"), std::string::npos) << text;
  EXPECT_EQ(text.find("libcuda"), std::string::npos) << text;
  EXPECT_EQ(text.find("libcupti"), std::string::npos) << text;
}

}  // namespace
}  // namespace warmgate::probe
