// Two artefacts through a whole gate: equal ones show nothing, different ones what differs, and one
// that cannot be made is no failure of the engine.
#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/run/artefact/testing.h"
#include "harness/run/testing.h"
#include "harness/verdict/artefact.h"

namespace warmgate::run::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verdict::Outcome;
using verdict::Verdict;

class ArtefactRuns : public Product {
 protected:
  ArtefactRuns() { options_.artefacts = dir_.path() / "artefacts"; }
  /// An environment whose `serve` is the honest worker.
  fs::path environment(const std::string& name, const std::string& version = "1.0") {
    const fs::path venv = make_fake_venv(dir_.path() / name);
    install_fake(venv, "engine", version, {{"engine/__init__.py", "version = " + version + "\n"}});
    fs::create_symlink(worker("honest"), venv / "bin/serve");
    return venv;
  }
  fs::path scenario(const std::string& variants, const std::string& more = "") {
    return put("s.yaml",
               "scenario: s\ntarget: {command: {argv: [serve]}}\nvariants:\n" + variants + more);
  }
  const VariantResult& variant(std::size_t index) const {
    return last_.scenarios.at(0).variants.at(index);
  }
  verdict::ArtefactDifference difference() const {
    return verdict::artefact_difference(*variant(0).artefact, *variant(1).artefact);
  }
};

TEST_F(ArtefactRuns, AAgainstAShowsNothing) {
  environment("one");
  environment("two");  // the same elsewhere
  options_.repeat = 6;
  last_ = run({scenario("  A: {venv: one}\n  B: {venv: two}\n",
                        "gate:\n  starts: {new: 0}\n  nothing-left-behind: {new: 0}\n"
                        "  time_to_ready_s: {regress: {by: 50 %, and: 30 s}}\n")});
  EXPECT_EQ(last_.verdict, Verdict::kPass) << last_.scenarios[0].reason;
  ASSERT_EQ(last_.scenarios[0].variants.size(), 2u);
  for (const VariantResult& each : last_.scenarios[0].variants) {
    ASSERT_EQ(each.runs.size(), 6u);
    for (const verdict::RunRecord& run : each.runs) {
      EXPECT_EQ(run.outcome, Outcome::kPassed) << story(run);
      EXPECT_THAT(broken(run), IsEmpty()) << story(run);
      EXPECT_EQ(run.environment["artefact"]["kind"], "venv");
      EXPECT_EQ(run.environment["artefact"]["packages"], 1);
    }
  }
  const auto compared = difference();
  EXPECT_THAT(compared.lines, IsEmpty());
  EXPECT_THAT(compared.not_observed, IsEmpty());
  EXPECT_EQ(compared.packages, 1u);
  EXPECT_FALSE(compared.same_artefact);
  const verdict::RunVerdict ab = compare(last_.scenarios[0], "A", "B", options_);
  EXPECT_EQ(ab.verdict, Verdict::kPass) << ab.reason;
  for (const verdict::Check& check : ab.checks)
    EXPECT_NE(check.verdict, Verdict::kFail) << check.what << " " << check.seen;
}

TEST_F(ArtefactRuns, TheSameEnvironmentTwiceIsOneArtefact) {
  environment("one");
  last_ = run({scenario("  A: {venv: one}\n  B: {venv: ./one}\n")});
  EXPECT_EQ(last_.verdict, Verdict::kPass);
  EXPECT_TRUE(difference().same_artefact);
  EXPECT_THAT(difference().lines, IsEmpty());
}

TEST_F(ArtefactRuns, PackagesVariablesAndCommandsThatDifferAreListed) {
  environment("one");
  install_fake(environment("two", "1.1"), "extra", "7");
  ::setenv("WARMGATE_TEST_API_KEY", "sk-unused-0123456789", 1);
  last_ =
      run({scenario("  A: {venv: one, target: {command: {env: {FLAG: 'on', MY_TOKEN: "
                    "hunter2hunter2, SAME: x}}}}\n"
                    "  B: {venv: two, command: [serve, --unknown], target: {command: {env: "
                    "{MY_TOKEN: swordfish99, "
                    "SAME: x}}}}\n")});
  ::unsetenv("WARMGATE_TEST_API_KEY");
  std::vector<std::string> lines;
  for (const auto& line : difference().lines)
    lines.push_back(line.what + " " + line.name + ": " + line.a + " > " + line.b);
  EXPECT_THAT(lines, ::testing::ElementsAre("package engine: 1.0 > 1.1", "package extra:  > 7",
                                            "variable FLAG: on > ",
                                            "variable MY_TOKEN: [secret 1] > [secret 2]",
                                            "command command: serve > serve --unknown"));
  EXPECT_EQ(variant(0).variant.identity, variant(1).variant.identity)
      << "artefacts are no part of what a run is";
}

TEST_F(ArtefactRuns, WhatCannotBeMadeIsInfraAndOnlyForItsVariant) {
  environment("one");
  last_ = run({scenario(
      "  A: {venv: one}\n  B: {venv: absent}\n  C: {wheel: absent-1-py3-none-any.whl}\n")});
  EXPECT_EQ(variant(0).runs[0].outcome, Outcome::kPassed) << story(variant(0).runs[0]);
  EXPECT_EQ(variant(1).runs[0].outcome, Outcome::kInfra);
  EXPECT_THAT(variant(1).runs[0].reason, HasSubstr("venv absent: "));
  EXPECT_THAT(variant(1).runs[0].reason, HasSubstr("is no virtual environment"));
  EXPECT_THAT(variant(2).runs[0].reason, HasSubstr("no such file"));
  EXPECT_EQ(last_.verdict, Verdict::kInfra);
  EXPECT_EQ(exit_code({last_.verdict}, false), 4);
}

TEST_F(ArtefactRuns, TheProgramRunsInItsEnvironment) {
  const fs::path venv = environment("one");
  fs::remove(venv / "bin/serve");
  script("one/bin/serve", "#!/bin/sh\n[ \"$VIRTUAL_ENV\" = \"" + venv.string() +
                              "\" ] && [ -z \"$PYTHONPATH\" ] && "
                              "[ \"$WARMGATE_ARTEFACT\" = \"$OWN\" ] && [ \"${PATH%%:*}\" = \"" +
                              venv.string() + "/bin\" ] && exec " + worker("honest") +
                              " \"$@\"\nexit 9\n");
  ::setenv("PYTHONPATH", "/somebody/elses", 1);
  last_ = run({scenario("  A: {venv: one, target: {command: {env: {OWN: '{artefact}'}}}}\n")});
  ::unsetenv("PYTHONPATH");
  EXPECT_EQ(variant(0).runs[0].outcome, Outcome::kPassed) << story(variant(0).runs[0]);
}

TEST_F(ArtefactRuns, WithoutAnArtefactNothingIsAdded) {
  last_ =
      run({put("p.yaml", "scenario: p\ntarget: {command: {argv: [" + worker("honest") + "]}}\n")});
  EXPECT_EQ(last_.verdict, Verdict::kPass);
  EXPECT_FALSE(variant(0).artefact);
  EXPECT_FALSE(variant(0).runs[0].environment.contains("artefact"));
  EXPECT_FALSE(fs::exists(dir_.path() / "artefacts"));
}

}  // namespace
}  // namespace warmgate::run::testing
