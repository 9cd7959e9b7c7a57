// What help and documents show has to exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The words of `tags: [a, b]` of every scenario.
std::set<std::string> tags_of_scenarios() {
  std::set<std::string> out;
  const std::regex line("(^|\n)tags: *\\[([^\\]]*)\\]"), word("[A-Za-z0-9_-]+");
  for (const auto& entry : fs::recursive_directory_iterator(source_path("scenarios"))) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string text = content(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
      const std::string list = (*it)[2];
      for (std::sregex_iterator tag(list.begin(), list.end(), word); tag != end; ++tag)
        out.insert(tag->str());
    }
  }
  return out;
}

TEST(Help, TagsOfExamplesAreThoseOfSomeScenario) {
  const std::set<std::string> known = tags_of_scenarios();
  ASSERT_FALSE(known.empty());
  std::vector<std::pair<std::string, std::string>> texts;
  texts.emplace_back("gate --help",
                     Running({program_path().string(), "gate", "--help"}).finish().out);
  EXPECT_THAT(texts.back().second, ::testing::HasSubstr("--tags "));
  for (const char* file : {"README.md", "scenarios/README.md", "fixtures/servers/README.md",
                           ".github/CONTRIBUTING.md"})
    texts.emplace_back(file, content(source_path(file)));
  const std::regex example("warmgate [^\n`]*--tags[= ]([A-Za-z0-9_,-]+)");
  for (const auto& [where, text] : texts) {
    for (std::sregex_iterator it(text.begin(), text.end(), example), end; it != end; ++it) {
      std::stringstream list((*it)[1]);
      for (std::string tag; std::getline(list, tag, ',');)
        EXPECT_EQ(known.count(tag), 1u) << where << " shows --tags " << tag;
    }
  }
}

}  // namespace
}  // namespace warmgate::cli
