// Where parts of a scenario stand, which files it is made of, and patterns that match nothing.
#include <gmock/gmock.h>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class Places : public TestFiles {};

TEST_F(Places, PartsAreFoundWhereTheyAreWritten) {
  write("base.yaml", std::string("limits: {max_num_seqs: 8}\nvariants:\n  B: {seed: 1}\n"));
  const Scenario scenario = load(std::string(kSmall) +
                                 "extends: base.yaml\n"                   // 5
                                 "variants:\n"                            // 6
                                 "  A: {seed: 2}\n"                       // 7
                                 "expect: {A: {outcome: passed}}\n"       // 8
                                 "gate: {time_to_ready_s: {max: 5}}\n");  // 9
  const auto at = [&](const char* key) {
    const auto it = scenario.positions.find(key);
    if (it == scenario.positions.end()) return std::string("nowhere");
    return std::filesystem::path(it->second.file).filename().string() + ":" +
           std::to_string(it->second.line) + ":" + std::to_string(it->second.column);
  };
  EXPECT_EQ(at("scenario"), "s.yaml:1:1");
  EXPECT_EQ(at("variants.A"), "s.yaml:7:3");
  EXPECT_EQ(at("variants.B"), "base.yaml:3:3");
  EXPECT_EQ(at("expect.A"), "s.yaml:8:10");
  EXPECT_EQ(at("gate.time_to_ready_s"), "s.yaml:9:8");
  EXPECT_EQ(at("variants.C"), "nowhere");
}

TEST_F(Places, EveryFileThatWasReadIsNamed) {
  write("base.yaml", "limits: {max_num_seqs: 8}\n");
  write("own.yaml",
        "behaviour: own\nabout: x\norigin: [{repo: a/b}]\nseams: {workspace.lock: never}\n");
  const Scenario scenario =
      load(std::string(kSmall) + "extends: base.yaml\nbehaviour: [vllm-rev-a, ./own.yaml]\n");
  std::vector<std::string> names;
  for (const auto& file : scenario.files) {
    EXPECT_TRUE(file.is_absolute()) << file;
    names.push_back(file.filename().string());
  }
  EXPECT_THAT(names, UnorderedElementsAre("s.yaml", "base.yaml", "small-dspark.yaml",
                                          "vllm-rev-a.yaml", "own.yaml"));
}

TEST_F(Places, PatternsThatNoPathCanMatchAreRefused) {
  const auto touching = [&](const std::string& glob) {
    return problems(std::string(kSmall) + "touches: [\"" + glob + "\"]\n");
  };
  for (const char* good : {"a", "*", "**", "a/**/b?.py", "[a]", "a b", "..a", "a../b", ".github/*"})
    EXPECT_EQ(touching(good), "") << good;
  EXPECT_THAT(touching("dir/"), HasSubstr("s.yaml:5:11: touches[0]: 'dir/'"));
  EXPECT_THAT(touching("dir/"), HasSubstr("'dir/**'"));
  for (const char* bad :
       {"/a", "./a", "../a", "a/./b", "a/../b", "a/..", "a//b", "!a", "a/{b,c}", ".", ".."})
    EXPECT_THAT(touching(bad), HasSubstr("touches")) << bad;
  EXPECT_THAT(problems(std::string(kSmall) + "touches: [\"\"]\n"), HasSubstr("touches"));
}

}  // namespace
}  // namespace warmgate::scenario
