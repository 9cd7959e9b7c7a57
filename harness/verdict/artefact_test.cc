// Identities in words and JSON, and in what two of them differ.
#include "harness/verdict/artefact.h"

#include <gmock/gmock.h>

namespace warmgate::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Package package(const std::string& name, const std::string& version,
                const std::string& digest = "") {
  Package out;
  out.name = name;
  out.version = version;
  out.digest = digest;
  return out;
}

ArtefactIdentity sample() {
  ArtefactIdentity out;
  out.kind = "wheel";
  out.name = "dist/a.whl";
  out.path = "/cache/venv-1";
  out.hash = std::string(64, 'a');
  out.version = "engine 1.0";
  out.commit = "837eae64581234567890";
  out.python = "3.11.2";
  out.packages = {package("engine", "1.0", "d1"), package("NumPy", "1.26", "d2")};
  out.environment = {{"PYTHONPATH", ""}, {"FLAG", "on"}};
  out.command = {"{artefact}/bin/serve"};
  return out;
}

std::vector<std::string> lines(const ArtefactDifference& difference) {
  std::vector<std::string> out;
  for (const auto& line : difference.lines)
    out.push_back(line.what + " " + line.name + ": " + line.a + " > " + line.b);
  return out;
}

TEST(ArtefactDifference, EqualThingsHaveNone) {
  ArtefactIdentity b = sample();
  const auto same = artefact_difference(sample(), b);
  EXPECT_THAT(same.lines, IsEmpty());
  EXPECT_TRUE(same.same_artefact);
  EXPECT_EQ(same.packages, 2u);
  EXPECT_EQ(same.variables, 2u);
  b.path = "/elsewhere";
  b.packages->at(1).name = "numpy";  // the same name, PEP 503
  EXPECT_THAT(artefact_difference(sample(), b).lines, IsEmpty());
  EXPECT_FALSE(artefact_difference(sample(), b).same_artefact);
}

TEST(ArtefactDifference, EveryPartIsCompared) {
  ArtefactIdentity b = sample();
  b.hash = std::string(64, 'b');
  b.commit = "904fae8be1";
  b.python = "3.12.0";
  b.packages = {package("engine", "1.1", "d3"), package("torch", "2.11")};
  b.environment = {{"PYTHONPATH", ""}, {"EMPTY", ""}};
  b.command = {"{artefact}/bin/serve", "--x"};
  EXPECT_THAT(
      lines(artefact_difference(sample(), b)),
      ElementsAre("python python: 3.11.2 > 3.12.0", "commit commit: 837eae645812 > 904fae8be1",
                  "package engine: 1.0 > 1.1", "package numpy: 1.26 > ", "package torch:  > 2.11",
                  "variable EMPTY:  > ''", "variable FLAG: on > ",
                  "command command: {artefact}/bin/serve > {artefact}/bin/serve --x"));
}

TEST(ArtefactDifference, TheSameVersionWithOtherFilesIsSeen) {
  ArtefactIdentity b = sample();
  b.packages->at(0).digest = "0123456789abcdef";
  EXPECT_THAT(lines(artefact_difference(sample(), b)),
              ElementsAre("package engine: 1.0 (files d1) > 1.0 (files 0123456789ab)"));
  b.packages->at(0).digest = "";
  EXPECT_THAT(lines(artefact_difference(sample(), b)), IsEmpty()) << "unknown is not different";
}

TEST(ArtefactDifference, FilesChangedOnOneSideAreSeen) {
  ArtefactIdentity a = sample(), b = sample();
  a.packages->at(0).changed = {"engine/a.py", "engine/both.py"};
  b.packages->at(0).changed = {"engine/both.py"};
  EXPECT_THAT(
      lines(artefact_difference(a, b)),
      ElementsAre("file engine/a.py: changed after installation > ",
                  "file engine/both.py: changed after installation > changed after installation"));
}

TEST(ArtefactDifference, OneInstallationDoesNotDifferFromItself) {
  ArtefactIdentity a = sample(), b = sample();
  for (ArtefactIdentity* each : {&a, &b}) each->packages->at(0).changed = {"engine/both.py"};
  EXPECT_THAT(lines(artefact_difference(a, b)), IsEmpty());
  b.path = "/elsewhere";
  EXPECT_THAT(lines(artefact_difference(a, b)), Not(IsEmpty()));
}

TEST(ArtefactDifference, ContentsThatNoListNamesAreSeen) {
  ArtefactIdentity b = sample();
  b.hash = std::string(64, 'b');
  EXPECT_THAT(lines(artefact_difference(sample(), b)),
              ElementsAre("contents wheel: aaaaaaaaaaaa > bbbbbbbbbbbb"));
  b.hash.clear();
  const auto unknown = artefact_difference(sample(), b);
  EXPECT_THAT(unknown.lines, IsEmpty());
  EXPECT_THAT(unknown.not_observed, ElementsAre(HasSubstr("contents")));
}

TEST(ArtefactDifference, WhatIsNotListedIsNotEqual) {
  ArtefactIdentity b = sample();
  b.packages.reset();
  b.packages_why = "image.list_packages is not set";
  const auto one = artefact_difference(sample(), b);
  EXPECT_THAT(one.not_observed,
              ElementsAre("packages of wheel dist/a.whl: image.list_packages is not set"));
  EXPECT_EQ(one.packages, 0u);
  const auto none = artefact_difference(b, b);
  EXPECT_THAT(none.not_observed, ElementsAre("packages: image.list_packages is not set"));
}

TEST(ArtefactDifference, OfWhatWasNeverMadeNothingIsKnown) {
  ArtefactIdentity a;
  a.kind = "venv";
  a.name = a.path = "/nowhere";
  a.environment = {{"X", "1"}};
  const auto twice = artefact_difference(a, a);
  EXPECT_TRUE(twice.unseen());
  EXPECT_FALSE(twice.same_artefact) << "one path, and nothing there";
  EXPECT_THAT(twice.not_observed, ElementsAre("contents: neither has a hash"));
  const auto one = artefact_difference(sample(), a);
  EXPECT_THAT(lines(one), ::testing::Not(::testing::Contains(HasSubstr("python"))));
  EXPECT_THAT(one.not_observed, ::testing::Contains("contents: venv /nowhere has no hash"));
  EXPECT_FALSE(artefact_difference(sample(), sample()).unseen());
}

TEST(ArtefactIdentity, InWordsAndJson) {
  EXPECT_EQ(identity_text(sample(), " - "),
            "wheel dist/a.whl - engine 1.0 - commit 837eae645812 - Python 3.11.2 - hash "
            "aaaaaaaaaaaa - /cache/venv-1");
  ArtefactIdentity bare;
  bare.kind = "venv";
  bare.name = bare.path = "/opt/a";
  EXPECT_EQ(identity_text(bare, " - "), "venv /opt/a");
  const auto json = to_json(sample());
  EXPECT_EQ(json["packages"]["numpy"], "1.26");
  EXPECT_EQ(json["packages"].begin().key(), "engine");
  EXPECT_TRUE(to_json(bare)["packages"].is_null());
  ArtefactDifference difference;
  difference.lines.push_back({"package", "x", "", "1"});
  EXPECT_TRUE(to_json(difference)["lines"][0]["a"].is_null());
  EXPECT_EQ(to_json(difference)["lines"][0]["b"], "1");
}

TEST(ArtefactIdentity, EditablePackagesSayWhere) {
  ArtefactIdentity a = sample(), b = sample();
  b.packages->at(0).editable = true;
  b.packages->at(0).origin = "file:///src";
  b.packages->at(0).commit = "0123456789abcdef";
  EXPECT_THAT(lines(artefact_difference(a, b)),
              ElementsAre("package engine: 1.0 > 1.0 editable from file:///src at 0123456789ab"));
}

TEST(NormalName, FollowsPep503) {
  EXPECT_EQ(normal_name("Foo._-Bar__baz"), "foo-bar-baz");
  EXPECT_EQ(normal_name(""), "");
}

}  // namespace
}  // namespace warmgate::verdict
