#include "harness/target/server/store_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TempDir;
using ::testing::UnorderedElementsAre;

void write(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
}

std::vector<std::string> fresh(StoreWatch& watch) {
  std::vector<std::string> out;
  watch.look([&](const FreshFile& file) { out.push_back(file.path); });
  return out;
}

TEST(StoreWatch, OnlyWhatIsNew) {
  const TempDir dir;
  write(dir.path() / "a/old");
  write(dir.path() / "top");
  StoreWatch watch(dir.path(), {}, 1000);
  watch.begin();
  EXPECT_THAT(fresh(watch), IsEmpty());
  write(dir.path() / "a/new");
  write(dir.path() / "b/c/deep");
  fs::create_directories(dir.path() / "empty");
  EXPECT_THAT(fresh(watch), UnorderedElementsAre("a/new", "b/c/deep"));
  EXPECT_THAT(fresh(watch), IsEmpty());
  write(dir.path() / "empty/not any more");
  EXPECT_THAT(fresh(watch), ElementsAre("empty/not any more"));
  EXPECT_FALSE(watch.cut());
}

TEST(StoreWatch, OneAfterTheOtherWithinOneTickOfTheClock) {
  const TempDir dir;
  StoreWatch watch(dir.path(), {}, 1000);
  watch.begin();
  for (int i = 0; i < 50; ++i) {
    write(dir.path() / std::to_string(i));
    EXPECT_THAT(fresh(watch), ElementsAre(std::to_string(i)));
  }
}

TEST(StoreWatch, ARootThatComesLaterGoesAndComesAgain) {
  const TempDir dir;
  const fs::path root = dir.path() / "root";
  StoreWatch watch(root, {}, 1000);
  watch.begin();
  EXPECT_THAT(fresh(watch), IsEmpty());
  write(root / "a/1");
  EXPECT_THAT(fresh(watch), ElementsAre("a/1"));
  fs::remove_all(root);
  EXPECT_THAT(fresh(watch), IsEmpty());
  EXPECT_EQ(watch.folders(), 0u);
  write(root / "a/1");
  EXPECT_THAT(fresh(watch), ElementsAre("a/1"));
}

TEST(StoreWatch, AnEntryThatIsReplacedIsNew) {
  const TempDir dir;
  write(dir.path() / "k.cubin");
  StoreWatch watch(dir.path(), {}, 1000);
  watch.begin();
  write(dir.path() / "k.tmp");
  fs::rename(dir.path() / "k.tmp", dir.path() / "k.cubin");
  EXPECT_THAT(fresh(watch), ElementsAre("k.cubin"));
  // A renamed folder brings what is in it.
  write(dir.path() / "tmp.1/k");
  fresh(watch);
  fs::rename(dir.path() / "tmp.1", dir.path() / "final");
  EXPECT_THAT(fresh(watch), ElementsAre("final/k"));
}

TEST(StoreWatch, LinksAreNewFilesAndLeadNowhere) {
  const TempDir dir;
  const TempDir other;
  StoreWatch watch(dir.path(), {}, 1000);
  watch.begin();
  fs::create_directory_symlink(".", dir.path() / "loop");
  fs::create_directory_symlink(other.path(), dir.path() / "out");
  fs::create_symlink("nothing", dir.path() / "broken");
  EXPECT_THAT(fresh(watch), UnorderedElementsAre("loop", "out", "broken"));
  write(other.path() / "x");
  EXPECT_THAT(fresh(watch), IsEmpty());
  // But the root may be one.
  fs::create_directory_symlink(other.path(), dir.path() / "root");
  StoreWatch through(dir.path() / "root", {}, 1000);
  through.begin();
  write(other.path() / "y");
  EXPECT_THAT(fresh(through), ElementsAre("y"));
}

TEST(StoreWatch, SkippedFolders) {
  const TempDir dir;
  fs::create_directories(dir.path() / "mine");
  StoreWatch watch(dir.path(), {dir.path() / "other", dir.path() / "mine/inner"}, 1000);
  watch.begin();
  write(dir.path() / "other/x");
  write(dir.path() / "mine/inner/x");
  write(dir.path() / "mine/y");
  EXPECT_THAT(fresh(watch), ElementsAre("mine/y"));
}

TEST(StoreWatch, MoreThanItMayKnow) {
  const TempDir dir;
  for (int i = 0; i < 30; ++i) write(dir.path() / "a" / std::to_string(i));
  StoreWatch watch(dir.path(), {}, 20);
  watch.begin();
  EXPECT_TRUE(watch.cut());
  for (int i = 0; i < 30; ++i) fs::remove(dir.path() / "a" / std::to_string(i));
  fresh(watch);
  write(dir.path() / "a/late");
  EXPECT_THAT(fresh(watch), ElementsAre("a/late"));
}

TEST(StoreWatch, WhatVanishesMeanwhile) {
  const TempDir dir;
  StoreWatch watch(dir.path(), {}, 1000);
  for (int i = 0; i < 20; ++i) write(dir.path() / std::to_string(i) / "x");
  watch.begin();
  for (int i = 0; i < 20; ++i) fs::remove_all(dir.path() / std::to_string(i));
  EXPECT_THAT(fresh(watch), IsEmpty());
  EXPECT_EQ(watch.folders(), 1u);
  // A folder that becomes a file.
  fs::create_directories(dir.path() / "f");
  fresh(watch);
  fs::remove(dir.path() / "f");
  write(dir.path() / "f");
  EXPECT_THAT(fresh(watch), ElementsAre("f"));
}

}  // namespace
}  // namespace warmgate::target
