// Built once, shared, rebuilt where damaged; and a failed build names its command.
#include "harness/run/artefact/store.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/files.h"
#include "harness/run/artefact/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Stores : public ArtefactTest {
 protected:
  /// Writes `content` into a file; damaged if it holds anything else.
  Recipe recipe(const std::string& content, const std::string& name = "x") {
    Recipe out;
    out.kind = "venv";
    out.made_from = {{"name", name}};
    out.what = "wheel " + name;
    out.build = [this, content](const fs::path& folder, const fs::path&) {
      ++builds_;
      write_file(folder / "bin/data", content);
      return nlohmann::json{{"content", content}};
    };
    out.damage = [](const fs::path& folder, const nlohmann::json& facts) -> std::string {
      return read_file(folder / "bin/data") == facts.value("content", "") ? "" : "data was changed";
    };
    return out;
  }
  Store store(bool rebuild = false) { return Store(path("cache"), rebuild, cancel_); }
  /// The entry of a store of its own, as another call of warmgate has it.
  std::shared_ptr<const Entry> once(const Recipe& what, bool rebuild = false) {
    Store own = store(rebuild);
    return own.get(what);
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path("cache")))
      out.push_back(entry.path().extension().string());
    std::sort(out.begin(), out.end());
    return out;
  }

  std::atomic<int> builds_{0};
};

TEST_F(Stores, BuildOnceAndShare) {
  const auto first = once(recipe("a"));
  EXPECT_TRUE(first->built);
  EXPECT_EQ(read_file(first->folder / "bin/data"), "a");
  const auto second = once(recipe("a"));
  EXPECT_FALSE(second->built);
  EXPECT_EQ(second->folder, first->folder);
  EXPECT_EQ(second->facts["content"], "a");
  EXPECT_NE(once(recipe("b", "y"))->folder, first->folder);
  EXPECT_EQ(builds_, 2);
}

TEST_F(Stores, AskedTwiceInOneCallAnswersFromMemory) {
  Store own = store(true);
  const auto first = own.get(recipe("a"));
  EXPECT_EQ(own.get(recipe("a")), first) << "a second lock of ours would wait for the first";
  EXPECT_EQ(builds_, 1);
}

TEST_F(Stores, TwoAtOnceBuildItOnce) {
  Recipe slow = recipe("a");
  std::atomic<int> inside{0}, most{0};
  const auto build = slow.build;
  slow.build = [&](const fs::path& folder, const fs::path& log) {
    most = std::max(most.load(), ++inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    --inside;
    return build(folder, log);
  };
  std::vector<std::shared_ptr<const Entry>> got(4);
  std::vector<std::thread> threads;
  for (auto& each : got) threads.emplace_back([&] { each = once(slow); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(builds_, 1);
  EXPECT_EQ(most, 1);
  for (const auto& each : got) EXPECT_EQ(each->folder, got[0]->folder);
}

TEST_F(Stores, DamageIsRepaired) {
  const fs::path folder = once(recipe("a"))->folder;
  write_file(folder / "bin/data", "evil");
  const auto repaired = once(recipe("a"));
  EXPECT_TRUE(repaired->built);
  EXPECT_EQ(repaired->note, "built anew: data was changed");
  EXPECT_EQ(read_file(folder / "bin/data"), "a");
  EXPECT_EQ(once(recipe("a"))->note, "");
}

TEST_F(Stores, WhatWasNotFinishedIsBuiltAnew) {
  const fs::path folder = once(recipe("a"))->folder;
  for (const char* facts : {"", "{", "[]", "{\"schema\": \"artefact/9.0\"}",
                            "{\"schema\": \"artefact/1.0\", \"made_from\": {\"name\": \"z\"}}"}) {
    write_file(folder.string() + ".json", facts);
    write_file(folder / "left/over", "x");
    EXPECT_EQ(once(recipe("a"))->note, "built anew: it was not finished") << facts;
    EXPECT_FALSE(fs::exists(folder / "left"));
  }
  fs::remove_all(folder);
  EXPECT_TRUE(once(recipe("a"))->built) << "facts without a folder";
}

TEST_F(Stores, RebuildIsOnceACall) {
  (void)once(recipe("a"));
  const auto again = once(recipe("a"), true);
  EXPECT_TRUE(again->built);
  EXPECT_EQ(again->note, "built anew: --rebuild");
  EXPECT_EQ(builds_, 2);
}

TEST_F(Stores, AnEntryInUseIsNotTakenAway) {
  const auto used = once(recipe("a"));
  std::thread other(
      [&] { EXPECT_EQ(message_of([&] { once(recipe("a"), true); }), "interrupted"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(read_file(used->folder / "bin/data"), "a");
  EXPECT_EQ(builds_, 1);
  cancel_.cancel();
  other.join();
}

TEST_F(Stores, AFailedBuildLeavesItsLogAndNothingElse) {
  Recipe bad = recipe("a");
  bad.build = [&](const fs::path& folder, const fs::path& log) -> nlohmann::json {
    write_file(folder / "half", "x");
    BuildStep step;
    step.argv = {"sh", "-c", "echo before; echo the reason >&2; exit 3"};
    step.log = log;
    run_step(step, cancel_);
    return {};
  };
  const std::string why = message_of([&] { once(bad); });
  EXPECT_THAT(why, HasSubstr("`sh -c 'echo before; echo the reason >&2; exit 3'` ended with 3: "
                             "before | the reason (all of it in "));
  EXPECT_THAT(kept(), ::testing::ElementsAre(".lock", ".log"));
  EXPECT_EQ(read_file(once(recipe("a"))->folder / "bin/data"), "a") << "and the next may succeed";
}

TEST_F(Stores, WhatIsDamagedAtOnceIsNotBuiltForEver) {
  Recipe bad = recipe("a");
  bad.damage = [](const fs::path&, const nlohmann::json&) { return std::string("no good"); };
  EXPECT_THAT(message_of([&] { once(bad); }), HasSubstr("damaged as soon as it is built: no good"));
  EXPECT_EQ(builds_, 1);
}

TEST_F(Stores, APlaceThatCannotBeWrittenIsNamed) {
  write_file(path("cache"), "a file");
  EXPECT_THAT(message_of([&] { once(recipe("a")); }), HasSubstr(path("cache").string()));
  EXPECT_THAT(message_of([&] {
                Store nowhere("", false, cancel_);
                nowhere.get(recipe("a"));
              }),
              HasSubstr("WARMGATE_ARTEFACT_CACHE"));
}

TEST_F(Stores, FoldersThatForbidWritingAreRemovedToo) {
  Recipe sealed = recipe("a");
  const auto build = sealed.build;
  sealed.build = [&](const fs::path& folder, const fs::path& log) {
    const auto facts = build(folder, log);
    fs::permissions(folder / "bin", fs::perms::owner_read | fs::perms::owner_exec);
    return facts;
  };
  (void)once(sealed);
  EXPECT_TRUE(once(sealed, true)->built);
  fs::permissions(once(sealed)->folder / "bin", fs::perms::owner_all);
}

TEST(DefaultCache, FollowsTheVariables) {
  const auto with = [](const char* own, const char* xdg, const char* home) {
    const auto put = [](const char* name, const char* value) {
      value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    };
    const std::string before = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
    put("WARMGATE_ARTEFACT_CACHE", own);
    put("XDG_CACHE_HOME", xdg);
    put("HOME", home);
    const std::string out = default_artefact_cache().string();
    ::unsetenv("WARMGATE_ARTEFACT_CACHE");
    ::unsetenv("XDG_CACHE_HOME");
    ::setenv("HOME", before.c_str(), 1);
    return out;
  };
  EXPECT_EQ(with("/own", "/x", "/h"), "/own");
  EXPECT_EQ(with("", "/x", "/h"), "/x/warmgate/artefacts");
  EXPECT_EQ(with(nullptr, nullptr, "/h"), "/h/.cache/warmgate/artefacts");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

class Steps : public ArtefactTest {
 protected:
  BuildStep shell_step(const std::string& line) {
    BuildStep step;
    step.argv = {"sh", "-c", line};
    step.log = path("log");
    return step;
  }
};

TEST_F(Steps, GiveOutputAndKeepALog) {
  EXPECT_EQ(output_of(shell_step("echo out; echo err >&2"), cancel_), "out\n");
  run_step(shell_step("echo one"), cancel_);
  run_step(shell_step("echo two >&2"), cancel_);
  EXPECT_EQ(read_file(path("log")), "$ `sh -c 'echo one'`\none\n$ `sh -c 'echo two >&2'`\ntwo\n");
}

TEST_F(Steps, SayHowTheyFailed) {
  EXPECT_THAT(message_of([&] { run_step(shell_step("kill -9 $$"), cancel_); }),
              HasSubstr("died by signal 9"));
  BuildStep missing = shell_step("");
  missing.argv = {"warmgate-no-such-program"};
  EXPECT_THAT(message_of([&] { run_step(missing, cancel_); }), HasSubstr("not found in PATH"));
  BuildStep slow = shell_step("sleep 60");
  slow.deadline_s = 0.05;
  EXPECT_THAT(message_of([&] { run_step(slow, cancel_); }), HasSubstr("not done after"));
  BuildStep watched = shell_step("sleep 60");
  watched.watch = [] { return std::string("too large"); };
  EXPECT_THAT(message_of([&] { run_step(watched, cancel_); }), HasSubstr("was ended: too large"));
  BuildStep secret = shell_step("exit 1");
  secret.shown_as = "curl https://h/x";
  const std::string why = message_of([&] { run_step(secret, cancel_); });
  EXPECT_THAT(why, HasSubstr("`curl https://h/x` ended with 1"));
  EXPECT_THAT(read_file(path("log")), HasSubstr("$ `curl https://h/x`"));
}

TEST_F(Steps, LeaveNothingRunningAndStopAtACancel) {
  // A child that outlives its parent in the same group.
  run_step(shell_step("sleep 60 & echo $! > " + path("pid").string()), cancel_);
  const int pid = std::stoi(read_file(path("pid")));
  bool gone = false;
  for (int i = 0; i < 200 && !gone; ++i) {
    const std::string state = read_file("/proc/" + std::to_string(pid) + "/stat");
    gone = state.empty() || state.find(") Z ") != std::string::npos;
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
  cancel_.cancel();
  EXPECT_EQ(message_of([&] { run_step(shell_step("sleep 60"), cancel_); }), "interrupted");
}

TEST_F(Steps, GetNothingOnStdinAndTheirOwnVariables) {
  ::setenv("WARMGATE_TEST_FOREIGN", "x", 1);
  BuildStep step = shell_step("cat; echo \"$WARMGATE_TEST_FOREIGN.$WARMGATE_TEST_OWN.$(pwd)\"");
  step.env = {{"WARMGATE_TEST_OWN", "y"}};
  step.without = {"WARMGATE_TEST_FOREIGN"};
  step.cwd = "/";
  EXPECT_EQ(output_of(step, cancel_), ".y./\n");
  ::unsetenv("WARMGATE_TEST_FOREIGN");
}

TEST(LastLines, AreTheLastThatSaySomething) {
  EXPECT_EQ(last_lines("a\nb\n\nc\n\n", 2, 100), "b | c");
  EXPECT_EQ(last_lines("bar 10%\rbar 100%\rdone", 2, 100), "bar 100% | done");
  EXPECT_EQ(last_lines("", 2, 100), "");
  EXPECT_EQ(last_lines("\n\n", 2, 100), "");
  EXPECT_EQ(last_lines(std::string(1000, 'x'), 2, 10), std::string(10, 'x'));
  EXPECT_EQ(last_lines("long long long\nshort", 5, 8), "short");
  EXPECT_EQ(last_lines("one", 5, 8), "one");
}

}  // namespace
}  // namespace warmgate::run::testing
