// --changed: what is read, what is selected, what a gate does with it.
#include "harness/cli/changed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "harness/cli/process_for_test.h"
#include "harness/cli/repository.h"

namespace warmgate::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Loads, and needs nothing of the product's fixtures.
const std::string kBody =
    "target: {command: {argv: [./worker.sh, plain]}}\n"
    "about: For tests.\n";

class Changed : public ::testing::Test {
 protected:
  Changed() { fs::create_directories(dir_.path() / ".git"); }

  ChangedFiles read(const std::vector<std::string>& words, const std::string& in = "") {
    std::istringstream stream(in);
    return read_changed(words, stream, dir_.path());
  }
  std::vector<std::string> files(const std::vector<std::string>& words,
                                 const std::string& in = "") {
    const ChangedFiles changed = read(words, in);
    return {changed.files.begin(), changed.files.end()};
  }
  std::string refusal(const std::vector<std::string>& words, const std::string& in = "") {
    try {
      (void)read(words, in);
      return "nothing was refused";
    } catch (const scenario::ScenarioError& error) {
      return error.what();
    }
  }
  Selection select_file(const std::string& name, const std::vector<std::string>& changed) {
    return select(scenario::load_scenario(dir_.path() / name), read(changed));
  }

  TempDir dir_;
};

TEST_F(Changed, ReadsPathsFromEverywhere) {
  EXPECT_THAT(files({"b/c.py", "a"}), ElementsAre("a", "b/c.py"));
  EXPECT_THAT(files({"a\nb c\n\nd"}), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(files({"-"}, "x\r\ny"), ElementsAre("x", "y"));
  EXPECT_THAT(files({"-"}, std::string("x\0y\nz\0", 6)), ElementsAre("x", "y\nz"));
  const std::string list = dir_.write("list.txt", "one\ntwo\n").string();
  EXPECT_THAT(files({"@" + list, "three"}), ElementsAre("one", "three", "two"));
  EXPECT_THAT(files({"./@x"}), ElementsAre("@x"));
}

TEST_F(Changed, PathsStartAtTheRepositoryWhereverItIsCalled) {
  const std::string root = fs::canonical(dir_.path()).string();
  EXPECT_THAT(files({"./a/../b", root + "/c/./d", "e//f", "g/"}),
              ElementsAre("b", "c/d", "e/f", "g"));
  fs::create_directories(dir_.path() / "deep/er");
  std::istringstream none;
  const ChangedFiles changed = read_changed({"a"}, none, dir_.path() / "deep/er");
  EXPECT_EQ(changed.root, fs::canonical(dir_.path()));
  EXPECT_THAT(changed.files, ElementsAre("a"));
  // Through a link to the repository, and to a file that is gone.
  fs::create_directory_symlink(dir_.path(), dir_.path() / "link");
  EXPECT_THAT(files({(dir_.path() / "link/deep/gone.py").string()}), ElementsAre("deep/gone.py"));
}

TEST_F(Changed, NamesThatGitQuotes) {
  EXPECT_THAT(files({R"("caf\303\251.py")", R"("a\"b\\c\td")", "plain \"x"}),
              ElementsAre("a\"b\\c\td", "caf\xc3\xa9.py", "plain \"x"));
  for (const char* bad : {R"("half)", R"("a\8")", R"("a\12")", R"("a\777")", R"("a"b")", R"("a\")"})
    EXPECT_THAT(refusal({bad}), HasSubstr("quoted as git does")) << bad;
}

TEST_F(Changed, ReadsWhatNameStatusPrints) {
  EXPECT_THAT(files({"-"}, "M\ta b\nA\tc\nR087\told\tnew\nD\t\"t\\tx\"\n"),
              ElementsAre("a b", "c", "new", "old", "t\tx"));
  EXPECT_THAT(refusal({"-"}, "a\nX9Y\tb\n"), HasSubstr("stdin:2:"));
  EXPECT_THAT(refusal({"-"}, "a\tb\n"), HasSubstr("--name-only"));
  EXPECT_THAT(refusal({"-"}, "M\t\n"), HasSubstr("an empty name"));
}

TEST_F(Changed, AByteOrderMarkIsNoPartOfAName) {
  EXPECT_THAT(files({"-"}, "\xEF\xBB\xBFx\ny"), ElementsAre("x", "y"));
}

TEST_F(Changed, AFolderStandsForAllThatIsInIt) {
  dir_.write("sub/deep/s.yaml", "scenario: s\ntouches: [vllm/attention/**]\n" + kBody);
  EXPECT_TRUE(select_file("sub/deep/s.yaml", {"sub"}).runs);
  EXPECT_TRUE(select_file("sub/deep/s.yaml", {"sub/deep/"}).runs);
  EXPECT_TRUE(select_file("sub/deep/s.yaml", {"vllm"}).runs);
  EXPECT_FALSE(select_file("sub/deep/s.yaml", {"su"}).runs);
  EXPECT_FALSE(select_file("sub/deep/s.yaml", {"vll", "vllm/att"}).runs);
}

TEST_F(Changed, AFileBelowALinkedFolderHasBothNames) {
  dir_.write("real/s.yaml", "scenario: s\ntouches: [other/**]\n" + kBody);
  fs::create_directory_symlink(dir_.path() / "real", dir_.path() / "link");
  EXPECT_TRUE(select_file("real/s.yaml", {"link/s.yaml"}).runs);
  EXPECT_TRUE(select_file("real/s.yaml", {"link"}).runs);
  EXPECT_TRUE(select_file("link/s.yaml", {"real/s.yaml"}).runs);
}

TEST_F(Changed, WhatIsNoListIsRefused) {
  EXPECT_THAT(refusal({"-"}, ""), HasSubstr("empty"));
  EXPECT_THAT(refusal({""}), HasSubstr("empty"));
  EXPECT_THAT(refusal({"-"}, "\n\r\n\n"), HasSubstr("empty"));
  EXPECT_THAT(refusal({"@/nowhere/list"}), HasSubstr("/nowhere/list"));
  EXPECT_THAT(refusal({"@"}), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal({"@" + dir_.path().string()}), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal({"../x"}), HasSubstr("is no file below"));
  EXPECT_THAT(refusal({"/etc/passwd"}), HasSubstr("is no file below"));
  EXPECT_THAT(refusal({"."}), HasSubstr("is no file below"));
  EXPECT_THAT(refusal({"-"}, "good\n../bad\n"), HasSubstr("stdin:2:"));
}

TEST_F(Changed, AnyNameThatGitPrintsComesBack) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::string name, quoted = "\"";
    const std::size_t length = 1 + random() % 12;
    for (std::size_t i = 0; i < length; ++i) {
      char c = static_cast<char>(1 + random() % 255);
      if (c == '/' || c == '.') c = 'x';
      name += c;
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      if (c == '"' || c == '\\')
        quoted += std::string("\\") + c;
      else
        quoted += c < 0x20 || c == 0x7f ? std::string(octal) : std::string(1, c);
    }
    EXPECT_THAT(files({"-"}, quoted + "\"\n"), ElementsAre(name));
    EXPECT_THAT(files({"-"}, name + '\0'), ElementsAre(name));
  }
}

TEST_F(Changed, AScenarioRunsForWhatItTouches) {
  dir_.write("s.yaml", "scenario: s\n" + kBody + "touches: [\"vllm/models/**\", \"csrc/*.cu\"]\n");
  EXPECT_TRUE(select_file("s.yaml", {"vllm/models/deep/a.py"}).runs);
  EXPECT_TRUE(select_file("s.yaml", {"README.md", "csrc/x.cu"}).runs);
  EXPECT_THAT(select_file("s.yaml", {"csrc/x.cu"}).why, HasSubstr("csrc/x.cu changed, which"));
  const Selection no = select_file("s.yaml", {"vllm/other.py", "csrc/x.cuh", "README.md"});
  EXPECT_FALSE(no.runs);
  EXPECT_THAT(no.why, HasSubstr("none of 3 changed files"));
  EXPECT_THAT(no.why, HasSubstr("vllm/models/**"));
}

TEST_F(Changed, WithoutTouchesItAlwaysRuns) {
  dir_.write("s.yaml", "scenario: s\n" + kBody);
  const Selection selection = select_file("s.yaml", {"whatever"});
  EXPECT_TRUE(selection.runs);
  EXPECT_THAT(selection.why, HasSubstr("no touches"));
}

TEST_F(Changed, AScenarioRunsForEveryFileThatItIsMadeOf) {
  dir_.write("fixtures/models/m.yaml", slurp(source_path("fixtures/models/small-flash.yaml")));
  std::string preset = slurp(source_path("fixtures/models/small-flash.yaml"));
  preset.replace(preset.find("small-flash"), 11, "m");
  dir_.write("fixtures/models/m.yaml", preset);
  dir_.write("fixtures/behaviours/b.yaml",
             "behaviour: b\nabout: x\norigin: [{repo: a/b}]\nseams: {jit.compiler: lenient}\n");
  dir_.write("scenarios/own.yaml",
             "behaviour: own\nabout: x\norigin: [{repo: a/b}]\nseams: {workspace.lock: never}\n");
  dir_.write("scenarios/base.yaml",
             "model: {preset: m}\nlimits: {device_memory_bytes: 80 GiB}\n"
             "workload: {requests: 1, prompt_tokens: 8, output_tokens: 2}\n");
  const fs::path file = dir_.write("scenarios/deep/s.yaml",
                                   "scenario: s\nextends: ../base.yaml\ntouches: [none]\n"
                                   "variants: {A: {behaviour: [b, ../own.yaml]}}\n");
  scenario::LoadOptions options;
  options.fixtures = dir_.path() / "fixtures";
  const scenario::Scenario scenario = scenario::load_scenario(file, options);
  for (const char* own :
       {"scenarios/deep/s.yaml", "scenarios/base.yaml", "scenarios/own.yaml",
        "fixtures/models/m.yaml", "fixtures/behaviours/b.yaml", "scenarios/deep/s.accepted.json"}) {
    const Selection selection = select(scenario, read({own}));
    EXPECT_TRUE(selection.runs) << own;
    EXPECT_THAT(selection.why, HasSubstr(own));
  }
  EXPECT_FALSE(select(scenario, read({"scenarios/other.yaml"})).runs);
  EXPECT_FALSE(select(scenario, read({"fixtures/models/other.yaml"})).runs);
  EXPECT_TRUE(select(scenario, read({"m.yaml"}), {dir_.path() / "m.yaml"}).runs);
}

TEST_F(Changed, TheProgramOfACommandIsPartOfIt) {
  dir_.write("s.yaml", "scenario: s\n" + kBody + "touches: [none]\n");
  EXPECT_FALSE(select_file("s.yaml", {"worker.sh"}).runs);  // there is none yet
  dir_.write("worker.sh", "#!/bin/sh\n");
  EXPECT_TRUE(select_file("s.yaml", {"worker.sh"}).runs);
}

TEST_F(Changed, ALinkAndWhatItLeadsToBothCount) {
  dir_.write("real/s.yaml", "scenario: s\n" + kBody + "touches: [none]\n");
  fs::create_symlink("real/s.yaml", dir_.path() / "link.yaml");
  EXPECT_TRUE(select_file("link.yaml", {"link.yaml"}).runs);
  EXPECT_TRUE(select_file("link.yaml", {"real/s.yaml"}).runs);
  EXPECT_FALSE(select_file("real/s.yaml", {"link.yaml"}).runs);
}

// As a user calls it.
class ChangedGate : public Changed {
 protected:
  void SetUp() override {
    dir_.write("scenarios/touched.yaml", small_scenario() + "touches: [\"engine/**\"]\n");
    std::string other = small_scenario();
    other.replace(other.find("small"), 5, "other");
    dir_.write("scenarios/untouched.yaml", other + "touches: [\"docs/**\"]\n");
  }
  Ran gate(const std::string& list, const std::string& more = "") {
    return shell("printf '" + list + "' | " + program_path().string() +
                     " gate scenarios --changed - " + more,
                 dir_.path());
  }
};

TEST_F(ChangedGate, RunsWhatIsTouchedAndSkipsTheRest) {
  const Ran ran = gate("engine/a.cc\\n", "--json out.json --markdown out.md --junit out.xml");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("runs because engine/a.cc changed"));
  EXPECT_THAT(ran.out, HasSubstr("none of 1 changed file is one of its own"));
  EXPECT_THAT(ran.out, HasSubstr("1 scenario skipped"));
  const auto report = nlohmann::json::parse(slurp(dir_.path() / "out.json"));
  ASSERT_EQ(report["scenarios"].size(), 2u);
  EXPECT_EQ(report["verdict"], "PASS");
  EXPECT_EQ(report["scenarios"][0]["verdict"], "PASS");
  EXPECT_EQ(report["scenarios"][1]["verdict"], "SKIP");
  EXPECT_TRUE(report["scenarios"][1]["variants"].empty());
  EXPECT_THAT(report["command"].get<std::string>(), Not(HasSubstr("untouched")));
  EXPECT_THAT(slurp(dir_.path() / "out.md"), HasSubstr("which scenarios the changed files touch"));
  EXPECT_THAT(slurp(dir_.path() / "out.xml"), HasSubstr("<skipped message=\"none of 1 changed"));
}

TEST_F(ChangedGate, NothingSelectedIsThreeUnlessSkipsAreAllowed) {
  const Ran ran = gate("LICENSE\\n");
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("ask for no scenario"));
  EXPECT_THAT(ran.out, HasSubstr("SKIP"));
  EXPECT_EQ(gate("LICENSE\\n", "--allow-skip").code, 0);
  EXPECT_EQ(gate("LICENSE\\n", "--json -").code, 3);
}

TEST_F(ChangedGate, ListsThatAreNoneAreTwo) {
  EXPECT_EQ(gate("").code, 2);
  EXPECT_EQ(gate("../x\\n").code, 2);
  EXPECT_EQ(warmgate({"gate", "scenarios", "--changed", "@none"}, {}, dir_.path()).code, 2);
  EXPECT_EQ(warmgate({"gate", "scenarios", "--changed", ""}, {}, dir_.path()).code, 2);
}

TEST_F(ChangedGate, VariantsOfScenariosThatArePassedOverAreNoSlip) {
  std::string other = small_scenario();
  for (std::size_t at = 0; (at = other.find("bad:", at)) != std::string::npos;)
    other.replace(at, 4, "odd:");
  dir_.write("scenarios/untouched.yaml", other + "touches: [\"docs/**\"]\n");
  EXPECT_EQ(gate("engine/a.cc\\n", "--variant good").code, 0);
  EXPECT_EQ(gate("engine/a.cc\\n", "--variant odd").code, 3);
  EXPECT_EQ(gate("engine/a.cc\\n", "--variant none").code, 2);
}

TEST_F(ChangedGate, ABrokenScenarioIsNotPassedOver) {
  dir_.write("scenarios/broken.yaml", "scenario: broken\nfrob: 1\ntouches: [\"docs/**\"]\n");
  EXPECT_EQ(gate("engine/a.cc\\n").code, 2);
  EXPECT_EQ(gate("engine/a.cc\\n", "--keep-going").code, 2);
}

TEST(Repository, IsTheNearestWithGit) {
  const TempDir dir;
  fs::create_directories(dir.path() / "a/b");
  fs::create_directories(dir.path() / "c");
  dir.write("a/.git", "gitdir: elsewhere\n");  // a worktree
  EXPECT_EQ(repository_of(dir.path() / "a/b"), fs::canonical(dir.path() / "a"));
  EXPECT_EQ(inside("/x/y", "/x/y/z/a"), "z/a");
  EXPECT_EQ(inside("/x/y", "/x/y"), "");
  EXPECT_EQ(inside("/x/y", "/x/yz"), "");
  EXPECT_EQ(inside("/x/y", "/x"), "");
  EXPECT_EQ(inside("/x/y", "/x/y/..a"), "..a");
  EXPECT_EQ(inside("", "/x"), "");
}

}  // namespace
}  // namespace warmgate::cli
