// What a killed warmgate left is removed; nothing else is.
#include "harness/run/stale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;

class Stale : public ::testing::Test {
 protected:
  Stale() : root_("stale-test") {}

  /// A folder as a run has it, whose owner is dead.
  fs::path left(const std::string& name) {
    const fs::path path = root_.path() / name;
    fs::create_directories(path / "events/deep");
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path / "events/deep/file") << "x";
    std::ofstream(path / "rank0.json") << "{}";
    std::ofstream(path / kOwnerFile) << "";
    return path;
  }
  int sweep() { return sweep_stale(root_.path()); }

  const RunDir root_;
};

TEST_F(Stale, WhatADeadOwnerLeftGoesWithEverythingInIt) {
  const fs::path one = left("warmgate-a-XXXXXX"), two = left("warmgate-b-XXXXXX");
  EXPECT_EQ(sweep(), 2);
  EXPECT_FALSE(fs::exists(one));
  EXPECT_FALSE(fs::exists(two));
  EXPECT_EQ(sweep(), 0);
}

TEST_F(Stale, OneInUseStays) {
  const fs::path path = left("warmgate-a-XXXXXX");
  fs::remove(path / kOwnerFile);
  {
    const UniqueFd owner = own(path);
    ASSERT_TRUE(owner.valid());
    EXPECT_EQ(sweep(), 0);
    EXPECT_TRUE(fs::exists(path / "events/deep/file"));
  }
  EXPECT_EQ(sweep(), 1);
}

TEST_F(Stale, NothingThatIsNotARunFolderOfOursIsTouched) {
  const fs::path kept = left("warmgate-kept-XXXXXX");  // no mark: somebody wants it
  fs::remove(kept / kOwnerFile);
  const fs::path open = left("warmgate-open-XXXXXX");  // not private
  fs::permissions(open, fs::perms::owner_all | fs::perms::group_read);
  const fs::path other = left("other-XXXXXX");
  const fs::path linked = left("real");
  fs::create_directory_symlink(linked, root_.path() / "warmgate-link-XXXXXX");
  const fs::path odd = left("warmgate-odd-XXXXXX");  // the mark is a link
  fs::remove(odd / kOwnerFile);
  std::ofstream(root_.path() / "precious") << "x";
  fs::create_symlink(root_.path() / "precious", odd / kOwnerFile);
  std::ofstream(root_.path() / "warmgate-file-XXXXXX") << "x";
  fs::path foreign;
  if (::geteuid() == 0) {
    foreign = left("warmgate-foreign-XXXXXX");
    ASSERT_EQ(::chown(foreign.c_str(), 12345, 12345), 0);
  }
  EXPECT_EQ(sweep(), 0);
  for (const fs::path& path : {kept, open, other, linked, odd})
    EXPECT_TRUE(fs::exists(path / "events/deep/file")) << path;
  EXPECT_TRUE(fs::exists(root_.path() / "warmgate-file-XXXXXX"));
  EXPECT_TRUE(foreign.empty() || fs::exists(foreign / "rank0.json"));
}

TEST_F(Stale, LinksInsideAreRemovedNotFollowed) {
  const fs::path path = left("warmgate-a-XXXXXX"), precious = root_.path() / "precious";
  fs::create_directory(precious);
  std::ofstream(precious / "file") << "x";
  fs::create_directory_symlink(precious, path / "events/link");
  fs::create_symlink(precious / "file", path / "link");
  fs::create_symlink("/nonexistent", path / "dangling");
  ASSERT_EQ(::mkfifo((path / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(sweep(), 1);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(precious / "file"));
}

TEST_F(Stale, ARootThatIsNotThere) {
  EXPECT_EQ(sweep_stale("/nonexistent"), 0);
  EXPECT_EQ(sweep_stale("/etc/passwd"), 0);
  EXPECT_EQ(sweep_stale(""), 0);
}

TEST_F(Stale, AKilledProcessLeavesAFolderThatTheNextOneRemoves) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TMPDIR", root_.path().c_str(), 1);
    const RunDir dir("victim");
    std::ofstream(dir.path() / "file") << "x";
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  EXPECT_EQ(sweep(), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(sweep(), 1);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace warmgate::run
