// Who may run beside whom, in which turn, and what lies in a shared folder.
#include "harness/target/machine_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "harness/target/test_support.h"

namespace warmgate::target::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MachineLock, SharedTogetherExclusiveAlone) {
  const TempDir dir;
  CancelToken cancel;
  using Mode = MachineLock::Mode;
  const auto take = [&](Mode mode, std::string* who = nullptr) {
    return MachineLock(
        mode, "a test", cancel, 60ms,
        [&](const std::string& holder) {
          if (who != nullptr) *who = holder;
        },
        dir.path());
  };
  {
    const MachineLock one = take(Mode::kShared), two = take(Mode::kShared);
    EXPECT_TRUE(one.held() && two.held());
    EXPECT_EQ(two.waited_for(), "");
    std::string who;
    const MachineLock alone = take(Mode::kExclusive, &who);
    EXPECT_FALSE(alone.held());
    EXPECT_THAT(who, HasSubstr("pid " + std::to_string(::getpid()) + ", shared, since "));
    EXPECT_THAT(who, HasSubstr(": a test"));
  }
  const MachineLock alone = take(Mode::kExclusive);
  EXPECT_TRUE(alone.held());
  EXPECT_FALSE(take(Mode::kShared).held());
  EXPECT_FALSE(take(Mode::kExclusive).held());
}

TEST(MachineLock, ACancelEndsTheWait) {
  const TempDir dir;
  CancelToken cancel;
  const MachineLock first(MachineLock::Mode::kExclusive, "x", cancel, 1s, {}, dir.path());
  std::thread later([&] {
    std::this_thread::sleep_for(30ms);
    cancel.cancel();
  });
  const auto begin = std::chrono::steady_clock::now();
  const MachineLock second(MachineLock::Mode::kShared, "y", cancel, 30s, {}, dir.path());
  later.join();
  EXPECT_FALSE(second.held());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(MachineLock, OneThatWaitsToBeAloneIsNotOvertaken) {
  const TempDir dir;
  CancelToken cancel;
  auto first = std::make_unique<MachineLock>(MachineLock::Mode::kShared, "x", cancel, 1s,
                                             std::function<void(const std::string&)>{}, dir.path());
  std::atomic<bool> waits{false};
  std::thread alone([&] {
    const MachineLock lock(
        MachineLock::Mode::kExclusive, "alone", cancel, 20s,
        [&](const std::string&) { waits = true; }, dir.path());
    EXPECT_TRUE(lock.held());
  });
  while (!waits) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(
      MachineLock(MachineLock::Mode::kShared, "late", cancel, 50ms, {}, dir.path()).held());
  first.reset();
  alone.join();
  EXPECT_TRUE(
      MachineLock(MachineLock::Mode::kShared, "later", cancel, 50ms, {}, dir.path()).held());
}

std::vector<std::string> notes(const fs::path& folder) {
  std::vector<std::string> out;
  const std::string prefix = MachineLock::file(folder).filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.rfind(prefix, 0) == 0) out.push_back(name);
  }
  return out;
}

TEST(MachineLock, WhoeverArrivesFirstGoesFirst) {
  const TempDir dir;
  CancelToken cancel;
  using Mode = MachineLock::Mode;
  auto first = std::make_unique<MachineLock>(Mode::kExclusive, "x", cancel, 1s,
                                             std::function<void(const std::string&)>{}, dir.path());
  std::mutex mutex;
  std::vector<int> order;
  std::atomic<int> waiting{0};
  std::vector<std::thread> all;
  // Of both kinds, each there before the next one comes.
  for (int i = 0; i < 6; ++i) {
    all.emplace_back([&, i] {
      std::atomic<bool> said{false};
      const MachineLock lock(
          i % 3 == 0 ? Mode::kExclusive : Mode::kShared, std::to_string(i), cancel, 30s,
          [&](const std::string&) {
            if (!said.exchange(true)) ++waiting;
          },
          dir.path());
      EXPECT_TRUE(lock.held());
      const std::lock_guard guard(mutex);
      order.push_back(i);
    });
    while (waiting <= i) std::this_thread::sleep_for(1ms);
  }
  first.reset();
  for (std::thread& each : all) each.join();
  // Those that share get it together, so among them any order is right.
  ASSERT_EQ(order.size(), 6u);
  EXPECT_EQ(order[0], 0);
  EXPECT_EQ(order[3], 3);
  EXPECT_THAT(notes(dir.path()), IsEmpty());
}

TEST(MachineLock, AStreamOfSharersDoesNotKeepOneOut) {
  const TempDir dir;
  CancelToken cancel;
  using Mode = MachineLock::Mode;
  std::atomic<bool> done{false};
  std::atomic<int> served{0};
  // Each takes it again at once: without a queue somebody always holds it.
  std::vector<std::thread> stream;
  for (int i = 0; i < 4; ++i) {
    stream.emplace_back([&] {
      while (!done) {
        const MachineLock lock(Mode::kShared, "stream", cancel, 30s, {}, dir.path());
        ++served;
        std::this_thread::sleep_for(5ms);
      }
    });
  }
  while (served < 8) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(MachineLock(Mode::kExclusive, "alone", cancel, 10s, {}, dir.path()).held());
  }
  const int before = served;
  while (served < before + 4) std::this_thread::sleep_for(1ms);  // nor is the stream kept out
  done = true;
  for (std::thread& each : stream) each.join();
}

TEST(MachineLock, WhoGivesUpDoesNotBlockTheNext) {
  const TempDir dir;
  CancelToken cancel;
  using Mode = MachineLock::Mode;
  const MachineLock first(Mode::kShared, "x", cancel, 1s, {}, dir.path());
  EXPECT_FALSE(MachineLock(Mode::kExclusive, "gave up", cancel, 30ms, {}, dir.path()).held());
  EXPECT_TRUE(MachineLock(Mode::kShared, "next", cancel, 5s, {}, dir.path()).held());
  EXPECT_EQ(notes(dir.path()).size(), 1u);
}

TEST(MachineLock, AKilledHolderHoldsNothingAndItsNoteGoes) {
  const TempDir dir;
  CancelToken cancel;
  using Mode = MachineLock::Mode;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const MachineLock lock(Mode::kExclusive, "victim", cancel, 1s, {}, dir.path());
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  EXPECT_FALSE(MachineLock(Mode::kShared, "x", cancel, 30ms, {}, dir.path()).held());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(MachineLock(Mode::kShared, "x", cancel, 5s, {}, dir.path()).held());
  ASSERT_EQ(notes(dir.path()).size(), 1u);
  MachineLock::sweep(dir.path());
  EXPECT_EQ(notes(dir.path()).size(), 1u) << "it could be a moment old";
  const timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir.path() / notes(dir.path())[0]).c_str(), old, 0), 0);
  const MachineLock alive(Mode::kShared, "alive", cancel, 1s, {}, dir.path());
  MachineLock::sweep(dir.path());
  ASSERT_EQ(notes(dir.path()).size(), 1u);
  EXPECT_THAT(notes(dir.path())[0], HasSubstr("." + std::to_string(::getpid()) + "."));
  ::close(ready[0]);
  ::close(ready[1]);
}

// What stands in the place of the lock file or of the gate.
class MachineLockFiles : public ::testing::TestWithParam<const char*> {
 protected:
  bool refused() {
    const CancelToken cancel;
    try {
      (void)MachineLock(MachineLock::Mode::kShared, "x", cancel, 10ms, {}, dir_.path());
      return false;
    } catch (const std::system_error&) {
      return true;
    }
  }
  fs::path place() const { return MachineLock::file(dir_.path()).replace_extension(GetParam()); }
  const TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Both, MachineLockFiles, ::testing::Values(".lock", ".gate"),
                         [](const auto& each) { return std::string(each.param + 1); });

TEST_P(MachineLockFiles, APipeDoesNotBlock) {
  ASSERT_EQ(::mkfifo(place().c_str(), 0600), 0);
  EXPECT_TRUE(refused());
}
TEST_P(MachineLockFiles, ALinkIsNotFollowed) {
  std::ofstream(dir_.path() / "precious") << "x";
  fs::create_symlink(dir_.path() / "precious", place());
  EXPECT_TRUE(refused());
}
TEST_P(MachineLockFiles, AnotherNameOfAFileOfOursIsNotWritten) {
  std::ofstream(dir_.path() / "precious") << "x";
  fs::create_hard_link(dir_.path() / "precious", place());
  EXPECT_TRUE(refused());
  EXPECT_EQ(fs::file_size(dir_.path() / "precious"), 1u);
}
TEST_P(MachineLockFiles, AFolderIsNone) {
  fs::create_directory(place());
  EXPECT_TRUE(refused());
}
TEST_P(MachineLockFiles, AnotherUsersFileIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  std::ofstream(place()) << "";
  ASSERT_EQ(::chown(place().c_str(), 12345, 12345), 0);
  EXPECT_TRUE(refused());
}
TEST_P(MachineLockFiles, OneThatOthersCouldHoldIsClosedToThem) {
  std::ofstream(place()) << "../../etc/passwd";
  fs::permissions(place(), fs::perms::all);
  EXPECT_FALSE(refused());
  EXPECT_EQ(fs::status(place()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace warmgate::target::testing
