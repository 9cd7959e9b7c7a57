#include <gmock/gmock.h>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Find : public TestFiles {
 protected:
  std::vector<std::string> find(std::vector<std::string> paths) {
    for (std::string& path : paths) path = (folder_ / path).string();
    std::vector<std::string> out;
    for (const auto& path : find_scenarios(paths)) {
      out.push_back(path.lexically_relative(folder_).string());
    }
    return out;
  }
  std::string refuse(const std::vector<std::string>& paths) {
    try {
      (void)find(paths);
    } catch (const ScenarioError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Find, FoldersGlobsAndFiles) {
  write("a/one.yaml", "scenario: one\n");
  write("a/b/two.yml", "# words\n\"scenario\": two\n");
  write("a/b/flow.yaml", "{scenario: flow}\n");
  write("a/base.yaml", "about: no name, only to be extended\nscenarios_like: 1\n");
  write("a/behaviour.yaml", "behaviour: b\nseams: {}\n");
  write("a/nested.yaml", "x:\n  scenario: not at the top\n");
  write("a/typo.yaml", "scenaro: meant to be one\n");
  write("a/notes.txt", "scenario: not yaml\n");
  write("a/.hidden/three.yaml", "scenario: three\n");
  EXPECT_THAT(find({"a"}),
              ElementsAre("a/b/flow.yaml", "a/b/two.yml", "a/one.yaml", "a/typo.yaml"));
  EXPECT_THAT(find({"a/*.yaml"}), ElementsAre("a/one.yaml", "a/typo.yaml"));
  EXPECT_THAT(find({"a/**/*.yml"}), ElementsAre("a/b/two.yml"));
  EXPECT_THAT(find({"a/one.yaml", "a", "a/../a/one.yaml"}),
              ElementsAre("a/b/flow.yaml", "a/b/two.yml", "a/one.yaml", "a/typo.yaml"));
  EXPECT_THAT(find({"a/base.yaml"}), ElementsAre("a/base.yaml"));  // named: loading says what it is
}

TEST_F(Find, NothingFoundIsAnError) {
  write("empty/behaviour.yaml", "behaviour: b\n");
  EXPECT_THAT(refuse({"none"}), HasSubstr("none: no such file or folder"));
  EXPECT_THAT(refuse({"empty"}), HasSubstr("empty: no scenario"));
  EXPECT_THAT(refuse({"empty/*.yml"}), HasSubstr("no scenario"));
  EXPECT_THAT(refuse({"none", "empty"}), HasSubstr("empty: no scenario"));
}

TEST_F(Find, ALinkToNowhereIsNotDropped) {
  write("a/one.yaml", "scenario: one\n");
  std::filesystem::create_symlink("nowhere.yaml", folder_ / "a/gone.yaml");
  EXPECT_THAT(find({"a"}), ElementsAre("a/gone.yaml", "a/one.yaml"));
}

TEST_F(Find, LinksInCirclesEnd) {
  write("a/one.yaml", "scenario: one\n");
  std::filesystem::create_directory_symlink("..", folder_ / "a/up");
  std::filesystem::create_symlink("one.yaml", folder_ / "a/same.yaml");
  EXPECT_EQ(find({"a"}).size(), 1u);
}

TEST_F(Find, WhatCannotBeReadIsNotDroppedAndSaysWhy) {
  write("a/one.yaml", "scenario: one\n");
  for (const char* name : {"loop.yaml", "other.yaml"})
    std::filesystem::create_symlink(name, folder_ / "a" / name);  // each leads to itself
  EXPECT_THAT(find({"a"}), ElementsAre("a/loop.yaml", "a/one.yaml", "a/other.yaml"));
  EXPECT_THAT(find({"a/*.yaml"}), ElementsAre("a/loop.yaml", "a/one.yaml", "a/other.yaml"));
  EXPECT_THAT(refuse({"a/loop.yaml"}), HasSubstr("oo many levels of symbolic links"));
  EXPECT_THAT(problems_of(folder_ / "a/loop.yaml"), HasSubstr("oo many levels of symbolic links"));
  EXPECT_THAT(refuse({std::string(5000, 'x')}), HasSubstr("name too long"));
  if (::geteuid() == 0) return;  // root reads everything
  std::filesystem::permissions(write("a/closed.yaml", "x: 1\n"), std::filesystem::perms::none);
  EXPECT_THAT(find({"a"}), ::testing::Contains("a/closed.yaml"));
}

}  // namespace
}  // namespace warmgate::scenario
