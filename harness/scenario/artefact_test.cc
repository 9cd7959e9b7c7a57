// command, venv, wheel, image and worktree: what a variant may be started from, and what not.
#include <gmock/gmock.h>

#include "harness/scenario/artefact_reader.h"
#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Artefact::Kind;

class Artefacts : public TestFiles {
 protected:
  static std::string command(const std::string& variants) {
    return "scenario: s\ntarget: {command: {argv: [python3, serve.py]}}\n" + variants;
  }
  Artefact of(const std::string& line, const LoadOptions& options = {}) {
    return load(command(line + "\n"), options).variants.at(0).artefact;
  }
};

TEST_F(Artefacts, AreNoneByDefault) {
  EXPECT_TRUE(of("about: nothing").empty());
  EXPECT_TRUE(load(kSmall).variants[0].artefact.empty());
}

TEST_F(Artefacts, ATextAloneIsTheFirstKey) {
  EXPECT_EQ(of("venv: /opt/a").venv, "/opt/a");
  EXPECT_EQ(of("wheel: dist/a.whl").wheel.path, "dist/a.whl");
  EXPECT_EQ(of("image: vllm/vllm-openai:v0.11.0").image.name, "vllm/vllm-openai:v0.11.0");
  EXPECT_EQ(of("worktree: 904fae8be1").worktree.revision, "904fae8be1");
  EXPECT_EQ(of("worktree: 904fae8be1").kind, Kind::kWorktree);
}

TEST_F(Artefacts, EveryKeyIsRead) {
  const std::string sha(64, 'A');
  const Artefact wheel = of("wheel: {url: 'https://h/x.whl', sha256: " + sha +
                            ", python: python3.11, pip: [--no-index]}");
  EXPECT_EQ(wheel.wheel.url, "https://h/x.whl");
  EXPECT_EQ(wheel.wheel.sha256, std::string(64, 'a')) << "hex is compared in lower case";
  EXPECT_EQ(wheel.wheel.python, "python3.11");
  EXPECT_THAT(wheel.wheel.pip, ElementsAre("--no-index"));
  const Artefact image =
      of("image: {name: a/b@sha256:12, engine: podman, run: [--gpus, all], list_packages: true}");
  EXPECT_EQ(image.image.engine, "podman");
  EXPECT_THAT(image.image.run, ElementsAre("--gpus", "all"));
  EXPECT_TRUE(image.image.list_packages);
  const WorktreeSource tree =
      of("worktree: {revision: main, repo: ../vllm, package: vllm, python_path: [src],\n"
         "  native: {wheel: {commit: 904fae8be1, from: 'https://h/{commit}.whl'}, built_from: "
         "v1},\n"
         "  native_paths: ['csrc/*'], native_files: ['*.so']}")
          .worktree;
  EXPECT_EQ(tree.repo, "../vllm");
  EXPECT_EQ(tree.wheel.commit, "904fae8be1");
  EXPECT_EQ(tree.wheel.from, "https://h/{commit}.whl");
  EXPECT_EQ(tree.built_from, "v1");
  EXPECT_TRUE(tree.has_prebuilt());
  EXPECT_THAT(tree.native_paths, ElementsAre("csrc/*"));
  EXPECT_THAT(tree.python_path, ElementsAre("src"));
}

TEST_F(Artefacts, ACommandReplacesTheTargetsAndIsNoPartOfTheIdentity) {
  const Scenario s = load(command(
      "variants:\n  A: {command: [python3, a.py]}\n  B: {command: [python3, b.py]}\n  C: {}\n"));
  EXPECT_THAT(s.variants[0].target.argv, ElementsAre("python3", "a.py"));
  EXPECT_THAT(s.variants[1].target.argv, ElementsAre("python3", "b.py"));
  EXPECT_THAT(s.variants[2].target.argv, ElementsAre("python3", "serve.py"));
  EXPECT_EQ(s.variants[0].identity, s.variants[1].identity);
  EXPECT_EQ(s.variants[0].identity, s.variants[2].identity);
  EXPECT_NE(s.variants[0].identity, "");
}

TEST_F(Artefacts, ACommandAloneIsATarget) {
  EXPECT_EQ(problems("scenario: s\ntarget: {command: {}}\nvariants: {A: {command: [x]}}\n"), "");
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {}}\nvariants: {A: {venv: /opt/a}}\n"),
              HasSubstr("target.command.argv: missing"));
}

TEST_F(Artefacts, AVariantsKindReplacesTheBases) {
  const Scenario s =
      load(command("venv: /opt/base\nvariants:\n  A: {wheel: a.whl}\n  B: {}\n"
                   "  C: {command: [other]}\n"));
  EXPECT_EQ(s.variants[0].artefact.kind, Kind::kWheel);
  EXPECT_EQ(s.variants[0].artefact.venv, "");
  EXPECT_EQ(s.variants[1].artefact.venv, "/opt/base");
  EXPECT_EQ(s.variants[2].artefact.kind, Kind::kVenv) << "a command runs in the environment";
  EXPECT_THAT(s.variants[2].artefact.command, ElementsAre("other"));
}

TEST_F(Artefacts, WithinAWheelTheSourcesExcludeEachOther) {
  const Scenario s =
      load(command("wheel: {commit: 904fae8be1, from: 'https://h/{commit}'}\n"
                   "variants: {A: {wheel: a.whl}, B: {wheel: {commit: '837eae6458'}}}\n"));
  EXPECT_EQ(s.variants[0].artefact.wheel.commit, "");
  EXPECT_EQ(s.variants[0].artefact.wheel.from, "");
  EXPECT_EQ(s.variants[1].artefact.wheel.commit, "837eae6458");
  EXPECT_EQ(s.variants[1].artefact.wheel.from, "https://h/{commit}");
}

TEST_F(Artefacts, SetAndMatrixReachThem) {
  LoadOptions options;
  options.overlays = {"venv=/opt/mine"};
  EXPECT_EQ(of("wheel: a.whl", options).venv, "/opt/mine");
  EXPECT_EQ(of("wheel: a.whl", options).kind, Kind::kVenv);
  const Scenario s = load(
      command("wheel: {from: 'https://h/{commit}'}\nmatrix: {wheel.commit: [aaaaaaa, bbbbbbb]}\n"));
  ASSERT_EQ(s.variants.size(), 2u);
  EXPECT_EQ(s.variants[1].artefact.wheel.commit, "bbbbbbb");
}

TEST_F(Artefacts, ImpossibleCombinationsAreNamed) {
  EXPECT_THAT(problems(command("variants: {A: {venv: a, wheel: b.whl}}\n")),
              HasSubstr("s.yaml:3:25: variants.A.wheel: wheel and venv exclude each other"));
  EXPECT_THAT(
      problems(std::string(kSmall) + "venv: /opt/a\n"),
      HasSubstr("s.yaml:5:7: venv: venv is what a command or server target is started from; "
                "this target is native"));
  EXPECT_THAT(problems(command("wheel: {path: a.whl, url: 'https://h/a.whl'}\n")),
              HasSubstr("exclude each other"));
  EXPECT_THAT(problems(command("worktree: {revision: a, native: {venv: v, wheel: w.whl}}\n")),
              HasSubstr("exclude each other"));
  EXPECT_THAT(problems(command("worktree: {revision: a, native: {built_from: b}}\n")),
              HasSubstr("worktree.native: names no environment"));
  EXPECT_THAT(problems(command("wheel: {python: python3}\n")), HasSubstr("names no wheel"));
  EXPECT_THAT(problems(command("command: python3 serve.py\n")),
              HasSubstr("a command line as one text is not taken"));
  EXPECT_THAT(problems(command("venvs: a\n")), HasSubstr("did you mean venv?"));
}

TEST_F(Artefacts, ADownloadIsHeldToItsHash) {
  EXPECT_THAT(problems(command("wheel: {url: 'https://h/a.whl'}\n")),
              HasSubstr("url needs sha256"));
  EXPECT_THAT(problems(command("wheel: {url: 'https://h/a.whl', sha256: 12}\n")),
              HasSubstr("expected 64 hex digits"));
  const std::string sha(64, '0');
  for (const char* url : {"ftp://h/a.whl", "-K/etc/passwd", "a.whl", "https://", "file://host/a"}) {
    EXPECT_THAT(
        problems(command("wheel: {url: '" + std::string(url) + "', sha256: '" + sha + "'}\n")),
        HasSubstr("wheel.url: expected https://"))
        << url;
  }
  EXPECT_THAT(problems(command("wheel: {commit: main, from: 'https://h/{commit}'}\n")),
              HasSubstr("does not name one wheel"));
  EXPECT_THAT(problems(command("wheel: {commit: abcdef0, from: 'http://h/{commit}'}\n")),
              HasSubstr("wheel.from: expected https://"));
  EXPECT_THAT(problems(command("wheel: {commit: abcdef0, from: 'https://h/x'}\n")),
              HasSubstr("with {commit} in it"));
}

TEST_F(Artefacts, WhatAProgramWouldTakeForAnOptionIsRefused) {
  EXPECT_THAT(problems(command("worktree: --force\n")),
              HasSubstr("worktree: '--force' begins with '-'"));
  EXPECT_THAT(problems(command("worktree: {revision: a, native: {venv: v, built_from: -x}}\n")),
              HasSubstr("begins with '-'"));
  EXPECT_THAT(problems(command("image: --privileged\n")),
              HasSubstr("image: '--privileged' begins with '-'"));
  EXPECT_THAT(problems(command("image: 'a b'\n")), HasSubstr("is no reference of an image"));
  EXPECT_THAT(problems(command("image: 'a;rm'\n")), HasSubstr("is no reference of an image"));
  EXPECT_THAT(problems(command("image: ''\n")), HasSubstr("empty; a reference"));
  EXPECT_THAT(problems(command("wheel: {path: a.whl, python: -c}\n")),
              HasSubstr("begins with '-'"));
  for (const char* line : {"venv: -rf", "wheel: -r/etc/passwd", "wheel: {path: -r/etc/passwd}",
                           "worktree: {revision: a, repo: --upload-pack=x}",
                           "worktree: {revision: a, native: {venv: -rf}}",
                           "worktree: {revision: a, native: {wheel: -r/etc/passwd}}",
                           "worktree: {revision: a, native_paths: [--all]}"}) {
    EXPECT_THAT(problems(command(line + std::string("\n"))),
                ::testing::AllOf(HasSubstr("s.yaml:3:"), HasSubstr("begins with '-'")))
        << line;
  }
  EXPECT_THAT(problems(command("worktree: {revision: a, package: -r/etc/passwd}\n")),
              HasSubstr("s.yaml:3:34: worktree.package: '-r/etc/passwd' is no name of a dist"));
  EXPECT_EQ(problems(command("venv: ./-rf\n")), "");
  EXPECT_THAT(problems(command("worktree: \"a\\nb\"\n")), HasSubstr("control characters"));
  EXPECT_THAT(problems(command("command: ['']\n")), HasSubstr("it is empty"));
}

TEST_F(Artefacts, FoldersStayInTheRevision) {
  for (const char* path : {"/etc", "..", "../x", "a/../../x", "a/..", ""}) {
    EXPECT_THAT(
        problems(command("worktree: {revision: a, python_path: ['" + std::string(path) + "']}\n")),
        HasSubstr("leads out of the revision"))
        << path;
  }
  EXPECT_EQ(problems(command("worktree: {revision: a, python_path: [., src/py, a..b]}\n")), "");
}

TEST_F(Artefacts, ResolveShowsThemWithoutCredentials) {
  const std::string sha(64, '0');
  const Scenario s =
      load(command("wheel: {url: 'https://me:hunter2@h/a.whl?sig=topsecret#x', "
                   "sha256: '" +
                   sha + "', pip: ['--index-url=https://u:pw@i/']}\n"));
  const std::string text = resolve_json(s.variants[0]).dump();
  EXPECT_THAT(text, HasSubstr("https://h/a.whl\""));
  for (const char* secret : {"hunter2", "topsecret", "u:pw", "me:"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
}

TEST(BareUrl, KeepsWhatIsNoSecret) {
  EXPECT_EQ(bare_url("https://h:8443/p/x.whl"), "https://h:8443/p/x.whl");
  EXPECT_EQ(bare_url("https://a:b@c@h/p@q?x=1"), "https://h/p@q");
  EXPECT_EQ(bare_url("file:///a/b.whl"), "file:///a/b.whl");
  EXPECT_EQ(bare_url("no url"), "no url");
}

}  // namespace
}  // namespace warmgate::scenario
