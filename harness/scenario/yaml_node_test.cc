#include "harness/scenario/yaml_node.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>

#include "harness/scenario/problems.h"
#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::HasSubstr;

std::string parse_problem(const std::string& text) {
  Problems problems;
  const NodePtr tree = parse_yaml(text, "f", problems);
  try {
    problems.throw_if_any();
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return tree ? "" : "null without a problem";
}

TEST(YamlNode, KeepsPlacesPathsAndQuotes) {
  Problems problems;
  const NodePtr tree = parse_yaml("a:\n  b: [x, \"5\"]\nc: {d: 5}\n", "f", problems);
  ASSERT_TRUE(tree);
  const NodePtr list = tree->find("a")->find("b");
  EXPECT_EQ(list->path, "a.b");
  EXPECT_EQ(list->place.line, 2);
  EXPECT_EQ(list->place.column, 6);
  EXPECT_EQ(list->items[1]->path, "a.b[1]");
  EXPECT_TRUE(list->items[1]->quoted);
  EXPECT_FALSE(list->items[0]->quoted);
  EXPECT_EQ(tree->find("c")->find("d")->path, "c.d");
  EXPECT_EQ(tree->entries[1].place.line, 3);
}

TEST(YamlNode, DuplicateKeysAreAllNamed) {
  const std::string text = parse_problem("a: 1\nb: {c: 1, c: 2}\na: 2\n");
  EXPECT_THAT(text, HasSubstr("f:2:11: b.c: given twice, first in line 2"));
  EXPECT_THAT(text, HasSubstr("f:3:1: a: given twice, first in line 1"));
}

TEST(YamlNode, SaysWhereItIsNoYaml) {
  EXPECT_THAT(parse_problem("a: b: c\n"), HasSubstr("f:1:5: not YAML"));
  EXPECT_THAT(parse_problem("a: > 5\n"), HasSubstr("f:1:6: not YAML"));
  EXPECT_THAT(parse_problem("a: > 5\n"), HasSubstr("a bound that starts with > is quoted"));
  EXPECT_THAT(parse_problem("a: {b: > 5}\n"), HasSubstr("\"> 5\""));
  EXPECT_THAT(parse_problem("a: [1, 2\n"), HasSubstr("not YAML"));
  EXPECT_THAT(parse_problem("a: *x\n"), HasSubstr("anchor"));
}

TEST(YamlNode, RefusesWhatTheLanguageHasNot) {
  EXPECT_THAT(parse_problem(""), HasSubstr("f: empty"));
  EXPECT_THAT(parse_problem("# only words\n"), HasSubstr("f: empty"));
  EXPECT_THAT(parse_problem("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_THAT(parse_problem("a: !!int 5\n"), HasSubstr("f:1:4: a: a tag"));
  EXPECT_THAT(parse_problem("a: &x {b: 1}\nc:\n  <<: *x\n"), HasSubstr("f:3:3: c: a merge key"));
  EXPECT_THAT(parse_problem("? [1, 2]\n: 3\n"), HasSubstr("as a key"));
  EXPECT_THAT(parse_problem(": 3\n"), HasSubstr("an empty key"));
  EXPECT_THAT(parse_problem("a: &x b\n*x : 3\n"), HasSubstr("an alias as a key"));
  EXPECT_THAT(parse_problem("a:\n\tb: 1\n"), HasSubstr("f:2:1: a tab in the indentation"));
  EXPECT_EQ(parse_problem("a: 1 # a comment\n\t# tabs before comments harm nobody\n"), "");
  EXPECT_THAT(parse_problem(std::string(200, 'k') + ": 1\n"), HasSubstr("a key of 200 bytes"));
}

TEST(YamlNode, BytesThatAreNoText) {
  EXPECT_THAT(parse_problem("a: 1\nb: \xff\n"), HasSubstr("f:2:4: byte 0xff is not UTF-8"));
  EXPECT_THAT(parse_problem(std::string("a: \0b\n", 6)), HasSubstr("f:1:4: byte 0x00"));
  EXPECT_THAT(parse_problem("a: \xc0\xaf\n"), HasSubstr("byte 0xc0"));      // overlong
  EXPECT_THAT(parse_problem("a: \xed\xa0\x80\n"), HasSubstr("byte 0xed"));  // surrogate
  EXPECT_THAT(parse_problem("a: \xf4\x90\x80\x80\n"), HasSubstr("byte 0xf4"));
  EXPECT_THAT(parse_problem("a: \xe2\x82"), HasSubstr("byte 0xe2"));  // cut off
  EXPECT_THAT(parse_problem("\xff\xfe" + std::string("a\0:\0", 4)), HasSubstr("byte 0xff"));
  EXPECT_EQ(parse_problem("\xef\xbb\xbf"
                          "a: ±\r\nb: 2\r\n"),
            "");
}

TEST(YamlNode, AliasesShareAValueButNotWithoutBound) {
  EXPECT_EQ(parse_problem("a: &x {b: 1}\nc: *x\n"), "");
  EXPECT_THAT(parse_problem("a: &x [*x]\n"), HasSubstr("an alias inside the value that it names"));
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += "*a" + last + (k < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(parse_problem(bomb), HasSubstr("values once aliases are expanded"));
  // Deep through aliases: each level alone is flat.
  std::string deep = "a0: &a0 [1]\n";
  for (int i = 1; i < 40; ++i) {
    deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  }
  EXPECT_THAT(parse_problem(deep), HasSubstr("levels deep"));
}

TEST(YamlNode, DepthAndSizeAreBounded) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(parse_problem(std::string(100000, '[')), "");
  EXPECT_THAT(
      parse_problem("a: " + std::string(20, '[') + std::string(20, ']')),
      HasSubstr("f:1:19: a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nested more than 16"));
  std::string maps;
  for (int i = 0; i < 20000; ++i) maps += "{a: ";
  EXPECT_NE(parse_problem(maps), "");
  std::string dashes;
  for (int i = 0; i < 50000; ++i) dashes += "- ";
  EXPECT_NE(parse_problem(dashes), "");
  std::string wide = "a: [";
  for (int i = 0; i < 50000; ++i) wide += "1, ";
  EXPECT_THAT(parse_problem(wide + "1]"), HasSubstr("more than 20000 values"));
  EXPECT_THAT(parse_problem("a: " + std::string(300 * 1024, 'x')),
              HasSubstr("larger than 256 KiB"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

using YamlFile = TestFiles;

TEST_F(YamlFile, OnlyRegularFilesAreRead) {
  EXPECT_THAT(problems_of(folder_ / "none.yaml"), HasSubstr("none.yaml: cannot be read: No such"));
  EXPECT_THAT(problems_of(folder_), HasSubstr("a folder, not a file"));
  const auto pipe = folder_ / "pipe.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(problems_of(pipe),
              HasSubstr("not a regular file"));  // and does not wait for a writer
  EXPECT_THAT(problems_of("/dev/zero"), HasSubstr("not a regular file"));
  EXPECT_THAT(problems_of(write("big.yaml", std::string(3 << 20, 'a'))),
              HasSubstr("larger than 256 KiB"));
}

}  // namespace
}  // namespace warmgate::scenario
