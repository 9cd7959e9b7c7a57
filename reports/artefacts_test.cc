// The head of a report over two artefacts, in every format.
#include "reports/artefacts.h"

#include <gmock/gmock.h>

#include "reports/ab.h"
#include "reports/json.h"
#include "reports/markdown.h"
#include "reports/sample_report.h"
#include "reports/schema_check.h"
#include "reports/terminal.h"

namespace warmgate::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

verdict::ArtefactIdentity identity(const std::string& version) {
  verdict::ArtefactIdentity out;
  out.kind = "wheel";
  out.name = "dist/engine-" + version + "-py3-none-any.whl";
  out.path = "/cache/venv-" + version;
  out.hash = std::string(64, version.back());
  out.version = "engine " + version;
  out.commit = version == "1.0" ? "904fae8be1" : "837eae6458";
  out.packages.emplace();
  for (const auto& [name, is] : {std::pair{"engine", version.c_str()}, {"numpy", "1.26"}}) {
    out.packages->emplace_back();
    out.packages->back().name = name;
    out.packages->back().version = is;
  }
  out.environment = {{"PYTHONPATH", ""}};
  out.notes = {"built anew: --rebuild"};
  return out;
}

// The first scenario's A and B from two wheels.
Sample two_wheels(const std::string& b = "1.1") {
  Sample out = sample_report();
  out.report.scenarios.resize(1);
  out.report.scenarios[0].variants[0].artefact = identity("1.0");
  out.report.scenarios[0].variants[1].artefact = identity(b);
  return out;
}

TEST(Artefacts, StandBeforeTheVariants) {
  const Sample sample = two_wheels();
  for (const std::string& text : {terminal_report(sample.report, Style{}),
                                  ab_report(sample.report, Style{}, Detail::kNormal)}) {
    EXPECT_THAT(
        text,
        HasSubstr("A  wheel dist/engine-1.0-py3-none-any.whl - engine 1.0 - commit 904fae8be1"));
    EXPECT_THAT(text, HasSubstr("B against A: commit, 1 package differ"));
    EXPECT_THAT(text, HasSubstr("package engine: 1.0 "));
    EXPECT_THAT(text, HasSubstr("built anew: --rebuild"));
    EXPECT_LT(text.find("package engine"), text.find("crashed in profile"));
  }
  const std::string markdown = markdown_report(sample.report);
  EXPECT_THAT(markdown, HasSubstr("### Artefacts"));
  EXPECT_THAT(markdown, HasSubstr("| `package engine` | `1.0` | `1.1` |"));
  EXPECT_LT(markdown.find("### Artefacts"), markdown.find("dspark-absent"));
}

TEST(Artefacts, ThatAreAlikeHaveNoLineOfDifference) {
  const Sample sample = two_wheels("1.0");
  const std::string text = ab_report(sample.report, Style{}, Detail::kNormal);
  EXPECT_THAT(text, HasSubstr("B against A: the same artefact: 2 packages, 1 variable compared"));
  EXPECT_THAT(text, Not(HasSubstr("differ")));
  EXPECT_EQ(json_report(sample.report)["scenarios"][0]["artefact_differences"][0]["lines"].size(),
            0u);
}

TEST(Artefacts, ThatWereNotMadeAreNotAlike) {
  Sample sample = two_wheels("1.0");
  for (VariantReport& variant : sample.report.scenarios[0].variants) {
    variant.artefact->hash.clear();
    variant.artefact->packages.reset();
  }
  for (const std::string& text :
       {ab_report(sample.report, Style{}, Detail::kNormal), markdown_report(sample.report)}) {
    EXPECT_THAT(text, HasSubstr("not observed: only 1 variable compared"));
    EXPECT_THAT(text, Not(HasSubstr("no difference")));
    EXPECT_THAT(text, Not(HasSubstr("the same artefact")));
  }
}

TEST(Artefacts, InJsonAsTheSchemaSays) {
  const auto schema = nlohmann::json::parse(slurp(golden_path("../report.schema.json")));
  Sample sample = two_wheels();
  sample.report.scenarios[0].variants[1].artefact->packages.reset();
  const nlohmann::json json = json_report(sample.report);
  EXPECT_THAT(SchemaCheck(schema).problems(json), ::testing::IsEmpty());
  const auto& variant = json["scenarios"][0]["variants"][0];
  EXPECT_EQ(variant["artefact"]["packages"]["numpy"], "1.26");
  EXPECT_EQ(json["scenarios"][0]["artefact_differences"][0]["a"], "A");
  EXPECT_EQ(json["scenarios"][0]["artefact_differences"][0]["not_observed"].size(), 1u);
}

TEST(Artefacts, ReportsWithoutThemAreAsBefore) {
  const Sample sample = sample_report();
  EXPECT_THAT(terminal_report(sample.report, Style{}), Not(HasSubstr("artefact")));
  EXPECT_THAT(markdown_report(sample.report), Not(HasSubstr("rtefact")));
  EXPECT_FALSE(json_report(sample.report)["scenarios"][0].contains("artefact_differences"));
}

TEST(Artefacts, ManyLinesAreCounted) {
  Sample sample = two_wheels();
  auto& packages = *sample.report.scenarios[0].variants[1].artefact->packages;
  for (int i = 0; i < 40; ++i) {
    packages.emplace_back();
    packages.back().name = "p" + std::to_string(i);
    packages.back().version = "1";
  }
  EXPECT_THAT(terminal_report(sample.report, Style{}),
              HasSubstr("and 30 more; --verbose shows them"));
  EXPECT_THAT(terminal_report(sample.report, Style{}, Detail::kVerbose),
              HasSubstr("package p39: - "));
  EXPECT_THAT(markdown_report(sample.report), HasSubstr("p39"));
}

TEST(Artefacts, HostileTextIsData) {
  Sample sample = hostile_report();
  const std::string& bad = hostile_text();
  for (int i = 0; i < 2; ++i) {
    verdict::ArtefactIdentity evil = identity("1.0");
    evil.name = evil.path = evil.version = evil.commit = evil.python = bad + std::to_string(i);
    evil.packages->at(0).name = evil.packages->at(0).version = bad;
    evil.packages->at(0).changed = {bad};
    evil.environment = {{bad, bad + std::to_string(i)}};
    evil.notes = {bad};
    evil.command = {bad};
    sample.report.scenarios[0].variants[static_cast<std::size_t>(i)].artefact = evil;
  }
  const std::string terminal = terminal_report(sample.report, Style{}, Detail::kVerbose);
  const std::string markdown = markdown_report(sample.report), json = json_text(sample.report);
  for (const std::string& text : {terminal, markdown, json}) {
    EXPECT_THAT(text, Not(HasSubstr("hunter2-token")));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\n::")));
  }
}

}  // namespace
}  // namespace warmgate::reports
