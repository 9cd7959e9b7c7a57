// A revision as files of ours; the user's repository stays as it was.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/makers.h"
#include "harness/run/artefact/testing.h"

namespace warmgate::run::testing {
namespace {

using scenario::WorktreeSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Worktrees : public ArtefactTest {
 protected:
  Worktrees() : store_(path("cache"), false, cancel_) {
    ::setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    git("init -q -b main .");
    write_file(repo() / "engine/__init__.py", "first = 1\n");
    write_file(repo() / "csrc/kernel.cu", "// one\n");
    first_ = commit("first");
    write_file(repo() / "engine/__init__.py", "second = 2\n");
    second_ = commit("second");
    write_file(repo() / "csrc/kernel.cu", "// two\n");
    third_ = commit("third");
    // What the user has open: a change of a file, one in the index, a hook that must not run.
    write_file(repo() / "engine/__init__.py", "in the editor\n");
    write_file(repo() / "staged.txt", "x");
    git("add staged.txt");
    write_script(repo() / ".git/hooks/post-checkout",
                 "#!/bin/sh\ntouch " + path("hooked").string() + "\n");
    before_ = state();
  }
  ~Worktrees() override { ::unsetenv("GIT_CONFIG_NOSYSTEM"); }

  fs::path repo() const { return path("repo"); }
  std::string git(const std::string& line) {
    fs::create_directories(repo());
    BuildStep step;
    step.argv = {"sh", "-c",
                 "git -c user.name=t -c user.email=t@t -c commit.gpgsign=false " + line};
    step.cwd = repo();
    return output_of(step, cancel_);
  }
  std::string commit(const std::string& message) {
    git("add -A");
    git("commit -q -m " + message);
    const std::string out = git("rev-parse HEAD");
    return out.substr(0, 40);
  }
  /// Everything of the repository that a person would miss, and all that git knows of work trees.
  std::string state() {
    return git("status --porcelain") + git("worktree list --porcelain") + git("branch -a -v") +
           git("stash list") + git("config --local -l");
  }
  MakeContext context() {
    return {store_, dir_.path(), dir_.path(), facts_, {"python3", "-m", "engine"}};
  }
  WorktreeSource source(const std::string& revision) {
    WorktreeSource out;
    out.revision = revision;
    out.repo = "repo";
    return out;
  }
  std::string why(const WorktreeSource& from) {
    return message_of([&] { make_worktree(context(), from); });
  }
  /// An environment with the engine of the first commit and its native part.
  WorktreeSource prebuilt(const std::string& revision) {
    const fs::path venv = path("venv");
    if (!fs::exists(venv)) {
      make_fake_venv(venv, "/bin/true");
      install_fake(venv, "engine", "1.0+g" + first_.substr(0, 10),
                   {{"engine/__init__.py", "installed = 1\n"},
                    {"engine/_C.abi3.so", "ELF"},
                    {"engine/deep/_D.so.1", "ELF2"},
                    {"engine/data.txt", "no library"}});
    }
    WorktreeSource out = source(revision);
    out.venv = "venv";
    out.native_paths = {"csrc/*", "CMakeLists.txt"};
    return out;
  }

  std::string first_, second_, third_, before_;
  ArtefactFacts facts_;
  Store store_;
};

TEST_F(Worktrees, HoldTheRevisionAndLeaveTheRepositoryAlone) {
  const Ready ready = make_worktree(context(), source("HEAD~2"));
  EXPECT_EQ(read_file(ready.root / "engine/__init__.py"), "first = 1\n");
  EXPECT_FALSE(fs::exists(ready.root / ".git"));
  EXPECT_EQ(ready.identity.commit, first_);
  EXPECT_THAT(ready.python_path, ElementsAre(ready.root.string() + "/"));
  EXPECT_FALSE(ready.identity.packages);
  EXPECT_EQ(state(), before_);
  EXPECT_FALSE(fs::exists(path("hooked"))) << "a hook of the repository ran";
  EXPECT_FALSE(fs::exists(repo() / ".git/worktrees") && !fs::is_empty(repo() / ".git/worktrees"));
  // The same commit by another name is the same entry.
  EXPECT_EQ(make_worktree(context(), source(first_.substr(0, 12))).root, ready.root);
  EXPECT_NE(make_worktree(context(), source("main")).root, ready.root);
}

TEST_F(Worktrees, AreMadeAnewWhereTheyWereChanged) {
  const fs::path root = [&] {
    Store first(path("cache"), false, cancel_);  // an entry in use is not taken away
    return make_worktree({first, dir_.path(), dir_.path(), facts_, {}}, source("HEAD")).root;
  }();
  write_file(root / "engine/__init__.py", "edited in the cache\n");
  write_file(root / "engine/__pycache__/x.pyc", "fine");
  Store later(path("cache"), false, cancel_);
  const Ready again = make_worktree({later, dir_.path(), dir_.path(), facts_, {}}, source("HEAD"));
  EXPECT_EQ(read_file(again.root / "engine/__init__.py"), "second = 2\n");
  EXPECT_THAT(again.identity.notes, ElementsAre("built anew: its files were changed"));
  EXPECT_EQ(state(), before_);
}

TEST_F(Worktrees, TakeNativePartsWhereTheDiffTouchesNone) {
  const Ready ready = make_worktree(context(), prebuilt(second_));
  EXPECT_EQ(read_file(ready.root / "engine/__init__.py"), "second = 2\n") << "its own files stay";
  EXPECT_EQ(read_file(ready.root / "engine/_C.abi3.so"), "ELF");
  EXPECT_EQ(read_file(ready.root / "engine/deep/_D.so.1"), "ELF2");
  EXPECT_FALSE(fs::exists(ready.root / "engine/data.txt")) << "only what native_files name";
  EXPECT_EQ(ready.bin, fs::canonical(path("venv")) / "bin");
  EXPECT_EQ(ready.env.at("VIRTUAL_ENV"), fs::canonical(path("venv")).string());
  ASSERT_TRUE(ready.identity.packages);
  EXPECT_EQ(ready.identity.packages->size(), 1u);
}

TEST_F(Worktrees, RefuseNativePartsWhereItTouchesOne) {
  EXPECT_THAT(why(prebuilt(third_)),
              HasSubstr("differs from " + first_.substr(0, 12) +
                        ", which the prebuilt parts come from, in native path csrc/kernel.cu"));
  WorktreeSource unknown = prebuilt(second_);
  unknown.native_paths.clear();
  EXPECT_THAT(why(unknown), HasSubstr("which paths are native is not known"));
  facts_.native_paths = {"csrc/*"};
  EXPECT_EQ(why(unknown), "") << "the preset knows";
  WorktreeSource same = prebuilt(first_);
  same.native_paths.clear();
  facts_.native_paths.clear();
  EXPECT_EQ(why(same), "") << "nothing differs";
}

TEST_F(Worktrees, WhatThePrebuiltPartsComeFromIsSaidOrAsked) {
  WorktreeSource from = prebuilt(second_);
  from.built_from = "HEAD";  // the third: csrc differs again
  EXPECT_THAT(why(from), HasSubstr("csrc/kernel.cu"));
  from.built_from = "no-such-tag";
  EXPECT_THAT(why(from), HasSubstr("has no commit no-such-tag"));
  install_fake(path("venv"), "silent", "1");
  from.built_from.clear();
  from.package = "silent";
  EXPECT_THAT(why(from), HasSubstr("give worktree.native.built_from"));
  from.package = "absent";
  EXPECT_THAT(why(from), HasSubstr("has no package absent"));
}

TEST_F(Worktrees, APackagesRecordLeadsNowhereElse) {
  WorktreeSource from = prebuilt(second_);
  for (const auto& entry : fs::directory_iterator(site_packages(path("venv")))) {
    if (entry.path().extension() != ".dist-info") continue;
    std::ofstream(entry.path() / "RECORD", std::ios::app)
        << "../../../../stolen.so,,\n/etc/stolen.so,,\nengine/../../up.so,,\n";
  }
  write_file(path("stolen.so"), "x");
  const Ready ready = make_worktree(context(), from);
  for (const auto& entry :
       fs::recursive_directory_iterator(ready.entries.front()->folder.parent_path())) {
    EXPECT_NE(entry.path().filename(), "stolen.so");
    EXPECT_NE(entry.path().filename(), "up.so");
  }
}

TEST_F(Worktrees, AFolderOfTheRevisionThatIsALinkIsNotFollowed) {
  git("checkout -q -f -b linked " + first_);
  fs::remove_all(repo() / "engine");
  fs::create_directory_symlink(path("outside"), repo() / "engine");
  fs::create_directories(path("outside"));
  const std::string hash = commit("linked");
  WorktreeSource from = prebuilt(hash);
  (void)make_worktree(context(), from);
  EXPECT_TRUE(fs::is_empty(path("outside")));
}

TEST_F(Worktrees, WhatCannotBeFoundIsNamed) {
  EXPECT_THAT(why(source("no-such-branch")),
              HasSubstr("has no commit no-such-branch; fetch it there first"));
  EXPECT_THAT(why(source("0123456789012345678901234567890123456789")), HasSubstr("has no commit"));
  EXPECT_THAT(why(source("--output=/tmp/x")), HasSubstr("has no commit --output"))
      << "not an option, even if one came here";
  EXPECT_THAT(why(source("HEAD:engine")), HasSubstr("has no commit")) << "a folder is none";
  WorktreeSource nowhere = source("HEAD");
  nowhere.repo = "none";
  EXPECT_THAT(why(nowhere), HasSubstr("none: no such folder"));
  ::setenv("GIT_CEILING_DIRECTORIES", dir_.path().c_str(), 1);
  fs::create_directories(path("plain"));
  nowhere.repo = "plain";
  EXPECT_THAT(why(nowhere), HasSubstr("is in no git repository"));
  ::unsetenv("GIT_CEILING_DIRECTORIES");
  WorktreeSource folder = source("HEAD");
  folder.python_path = {"src"};
  EXPECT_THAT(why(folder), HasSubstr("has no folder src"));
  EXPECT_EQ(state(), before_);
}

TEST_F(Worktrees, ACallersGitVariablesAreNotOurs) {
  ::setenv("GIT_DIR", "/nowhere", 1);
  ::setenv("GIT_INDEX_FILE", (path("index")).c_str(), 1);
  const std::string said = why(source("HEAD"));
  ::unsetenv("GIT_DIR");
  ::unsetenv("GIT_INDEX_FILE");
  EXPECT_EQ(said, "");
  EXPECT_FALSE(fs::exists(path("index")));
}

}  // namespace
}  // namespace warmgate::run::testing
