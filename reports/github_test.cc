#include "reports/github.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <sstream>

#include "reports/sample_report.h"
#include "reports/text.h"

namespace warmgate::reports {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// The runner's way to read a line (actions/runner, src/Runner.Common/ActionCommand.cs, TryParseV2):
// blanks in front are dropped, `::` to the next `::`, the word up to the first blank, properties
// split at commas and the first equals sign, each decoded.
struct Command {
  std::string name, message;
  std::map<std::string, std::string> properties;
};

std::string decoded(std::string text, bool property) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("%0D", "\r");
  replace("%0A", "\n");
  if (property) replace("%3A", ":"), replace("%2C", ",");
  replace("%25", "%");
  return text;
}

std::optional<Command> parse(std::string line) {
  line.erase(0, line.find_first_not_of(" \t\r\n"));
  if (line.rfind("::", 0) != 0) return std::nullopt;
  const std::size_t end = line.find("::", 2);
  if (end == std::string::npos) return std::nullopt;
  const std::string head = line.substr(2, end - 2);
  Command out;
  const std::size_t blank = head.find(' ');
  out.name = head.substr(0, blank);
  std::istringstream in(blank == std::string::npos ? "" : head.substr(blank + 1));
  for (std::string pair; std::getline(in, pair, ',');) {
    const std::size_t equals = pair.find('=');
    if (equals != std::string::npos)
      out.properties[pair.substr(0, equals)] = decoded(pair.substr(equals + 1), true);
  }
  out.message = decoded(line.substr(end + 2), false);
  return out;
}

std::vector<Command> commands_of(const std::string& text) {
  std::vector<Command> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::optional<Command> command = parse(line);
    EXPECT_TRUE(command.has_value()) << "no command: " << line;
    if (command) out.push_back(*command);
  }
  return out;
}

std::size_t count(const std::vector<Command>& all, const std::string& name) {
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](const Command& command) { return command.name == name; }));
}

std::string same(const std::string& path) { return path; }

TEST(Github, Golden) {
  Sample s = sample_report();
  s.report.scenarios[1].position = {"scenarios/others.yaml", 1, 1};
  s.report.scenarios[1].variants[0].position = {"scenarios/others.yaml", 12, 3};
  expect_golden("annotations.txt", github_annotations(s.report, same));
}

TEST(Github, EachVerdictHasItsLevelAndPlace) {
  Sample s = sample_report();
  s.report.scenarios[1].position = {"scenarios/others.yaml", 1, 1};
  s.report.scenarios[1].variants[0].position = {"scenarios/others.yaml", 12, 3};
  const auto all = commands_of(github_annotations(s.report, same));
  ASSERT_EQ(all.size(), 5u);  // FAIL, INFRA, the stale allow; INCONCLUSIVE; SKIP
  EXPECT_EQ(count(all, "error"), 3u);
  EXPECT_EQ(count(all, "warning"), 1u);
  EXPECT_EQ(count(all, "notice"), 1u);
  EXPECT_EQ(all[0].properties.at("file"), "scenarios/others.yaml");
  EXPECT_EQ(all[0].properties.at("line"), "12");
  EXPECT_EQ(all[0].properties.at("col"), "3");
  EXPECT_EQ(all[0].properties.at("title"), "FAIL others fail: crashed in profile");
  EXPECT_THAT(all[0].message, HasSubstr("own no topk_indices_buffer"));
  EXPECT_THAT(all[0].message, HasSubstr("\nrepeat: warmgate run "));
  EXPECT_EQ(all[2].properties.at("file"), "x.yaml");
  EXPECT_EQ(all[2].properties.at("line"), "9");
  EXPECT_THAT(all[4].message, HasSubstr("others skip: needs 1 GPU"));
}

TEST(Github, AGoodReportSaysNothing) {
  Sample s = sample_report();
  s.report.scenarios.resize(1);
  s.report.verdict = verdict::Verdict::kPass;
  EXPECT_EQ(github_annotations(s.report, same), "");
}

TEST(Github, SoftVerdictsAreWarnings) {
  Sample s = sample_report();
  s.report.soft = {verdict::Verdict::kFail};
  const auto all = commands_of(github_annotations(s.report, same));
  EXPECT_EQ(count(all, "error"), 1u);  // INFRA
  EXPECT_EQ(count(all, "warning"), 3u);
}

TEST(Github, AFileOutsideTheRepositoryIsNotNamed) {
  const auto all =
      commands_of(github_annotations(sample_report().report, [](const auto&) { return ""; }));
  for (const Command& command : all) {
    EXPECT_EQ(command.properties.count("file"), 0u);
    EXPECT_EQ(command.properties.count("line"), 0u);  // of which file?
  }
}

TEST(Github, TenOfEachLevelAndTheRestCounted) {
  for (const std::size_t number : {9u, 10u, 11u, 500u}) {
    Sample s = sample_report();
    ScenarioReport& two = s.report.scenarios[1];
    two.checks.clear();
    const VariantReport fail = two.variants[0], doubt = two.variants[1];
    two.variants.clear();
    for (std::size_t i = 0; i < number; ++i) {
      two.variants.push_back(fail);
      two.variants.push_back(doubt);
    }
    const auto all = commands_of(github_annotations(s.report, same));
    EXPECT_EQ(count(all, "error"), std::min<std::size_t>(number, 10));
    EXPECT_EQ(count(all, "warning"), std::min<std::size_t>(number, 10));
    if (number > 10) {
      EXPECT_THAT(all[9].message, HasSubstr("and " + std::to_string(number - 9) + " more"));
    } else {
      EXPECT_THAT(all.back().message, Not(HasSubstr(" more of this kind")));
    }
  }
}

TEST(Github, HostileTextEndsNoCommandAndStartsNone) {
  const Sample s = hostile_report();
  const std::string text = github_annotations(s.report, same);
  const auto all = commands_of(text);  // every line is a command of ours
  ASSERT_FALSE(all.empty());
  for (const Command& command : all) {
    EXPECT_TRUE(command.name == "error" || command.name == "warning" || command.name == "notice")
        << command.name;
    for (const auto& [name, value] : command.properties)
      EXPECT_TRUE(name == "file" || name == "line" || name == "col" || name == "title") << name;
    EXPECT_FALSE(command.message.empty());
    // The only control characters are the ends of our own lines.
    for (const char c : command.message)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  }
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(text, Not(HasSubstr("##[")));
  EXPECT_THAT(text, Not(HasSubstr("##vso[")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(valid_utf8(text), text);
}

TEST(Github, WhatALogSaysCannotBecomeACommand) {
  for (const std::string& bad :
       {std::string("::set-output name=a::b"), std::string("x\n::add-mask::secret"),
        std::string("]]><script>alert(1)</script>"), std::string(1 << 20, 'x'),
        std::string("\xff\xfe\xc0\xaf"), std::string("a\0b", 3), std::string("\x1b[31mred\x1b[0m"),
        std::string("100%0A::error::x"), std::string("a,line=1::b: c"), std::string("\r\r\n")}) {
    Sample s = sample_report();
    for (verdict::RunRecord& run : s.runs) run.reason = run.phase = run.reproduce = bad;
    s.report.scenarios[1].name = bad;
    s.report.scenarios[1].path = bad;
    const std::string text = github_annotations(s.report, same);
    const auto all = commands_of(text);
    EXPECT_EQ(all.size(), 5u) << bad.substr(0, 40);
    EXPECT_LT(text.size(), 64000u);
    for (const Command& command : all) {
      EXPECT_THAT(command.name, ::testing::AnyOf("error", "warning", "notice"));
      EXPECT_LE(columns(command.properties.at("title")), 255u);
      EXPECT_LT(command.message.size(), 16000u);
    }
  }
}

TEST(Github, EscapesAsTheRunnerDecodes) {
  EXPECT_EQ(github_data("50% a:b,c\r\n"), "50%25 a:b,c%0D%0A");
  EXPECT_EQ(github_property("50% a:b,c\r\n"), "50%25 a%3Ab%2Cc%0D%0A");
  const std::string text = "%0A %25 %3A %2C \r\n : , %";
  EXPECT_EQ(decoded(github_property(text), true), text);
  EXPECT_EQ(decoded(github_data(text), false), text);
}

TEST(Github, ProblemsOfScenariosStandAtTheirLine) {
  std::vector<scenario::Problem> problems = {
      {"scenarios/a,b.yaml", 5, 10, "limits.max_modle_len", "unknown; did you mean max_model_len"},
      {"--variant", 0, 0, "", "no variant 'x'"}};
  const auto path = [](const std::string& file) { return file[0] == '-' ? "" : file; };
  const auto all = commands_of(github_annotations(problems, path));
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].name, "error");
  EXPECT_EQ(all[0].properties.at("file"), "scenarios/a,b.yaml");
  EXPECT_EQ(all[0].properties.at("line"), "5");
  EXPECT_EQ(all[0].properties.at("col"), "10");
  EXPECT_EQ(all[0].properties.at("title"), "warmgate: limits.max_modle_len");
  EXPECT_EQ(all[1].properties.count("line"), 0u);
  EXPECT_EQ(all[1].message, "--variant: no variant 'x'");
}

}  // namespace
}  // namespace warmgate::reports
