// Files nobody meant to write: whatever the bytes, loading ends in a Scenario or in problems.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using Hostile = TestFiles;

TEST_F(Hostile, DamagedScenariosNeverCrash) {
  std::string seed;
  for (const char* name : {"seeds/dspark-absent-topk-buffer.yaml", "gate/late-keys.yaml"}) {
    std::ifstream in(source() / "scenarios" / name);
    seed = std::string((std::istreambuf_iterator<char>(in)), {});
    ASSERT_FALSE(seed.empty());
    std::mt19937 random(20260810);
    const std::string spice = "{}[]:,-#&*!|>'\"%@`\n\t 0129e.~\\\xff\xc2";
    int refused = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < 300; ++round) {
      std::string text = seed;
      const int edits = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < edits; ++i) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
          case 0:
            text[at] = spice[random() % spice.size()];
            break;
          case 1:
            text.erase(at, random() % 40);
            break;
          case 2:
            text.insert(at, 1, spice[random() % spice.size()]);
            break;
          default:
            text.insert(at, text.substr(random() % text.size(), random() % 60));
        }
        if (text.empty()) text = "x";
      }
      const auto file = write("s.yaml", text);
      try {
        (void)load_scenario(file);
      } catch (const ScenarioError& error) {
        ++refused;
        EXPECT_FALSE(error.problems().empty());
        EXPECT_FALSE(error.problems().front().message.empty());
      } catch (const std::exception& error) {
        FAIL() << "round " << round << ": " << error.what() << "\n" << text;
      }
    }
    EXPECT_GT(refused, 150);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  }
}

TEST_F(Hostile, EveryKeyTakesEveryKindOfNonsense) {
  for (const char* key :
       {"about",      "source", "tags",     "extends", "target",   "behaviour",     "seams",
        "model",      "limits", "parallel", "drafter", "workload", "architectures", "seed",
        "probe_keys", "checks", "ranks",    "devices", "variants", "matrix",        "expect",
        "gate",       "allow",  "needs",    "touches"}) {
    for (const char* value : {"~", "[]", "{}", "[{}]", "[[[]]]", "{a: {b: [c]}}", "-1", "\"\"", "é",
                              "9223372036854775808", "{1: 2, default: x}", "[~, ~]", "{? a}"}) {
      const std::string text = std::string("scenario: s\n") + key + ": " + value + "\n";
      const auto file = write("s.yaml", text);
      try {
        (void)load_scenario(file);
      } catch (const ScenarioError&) {
      } catch (const std::exception& error) {
        FAIL() << text << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace warmgate::scenario
