// Virtual environments, wheels, revisions and images, made for real as far as a machine without
// network and container engine can.
#include "harness/run/artefact/makers.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/testing.h"

namespace warmgate::run::testing {
namespace {

using scenario::ImageSource;
using scenario::WheelSource;
using scenario::WorktreeSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Makers : public ArtefactTest {
 protected:
  Makers() : store_(path("cache"), false, cancel_) {}
  MakeContext context(const std::vector<std::string>& argv = {"python3", "-m", "engine"}) {
    return {store_, dir_.path(), dir_.path(), facts_, argv};
  }
  static bool can_install() {
    return std::system(
               "python3 -m pip --version >/dev/null 2>&1 || "
               "python3 -c 'import ensurepip' 2>/dev/null") == 0;
  }
  fs::path wheel(const std::string& version, const std::string& text = "print('engine')\n") {
    return make_wheel_file(dir_.path(), "engine", version, {{"engine/__main__.py", text}});
  }
  std::string why_no_wheel(const WheelSource& source) {
    return message_of([&] { make_wheel(context(), source); });
  }

  /// Logs and facts: what is kept of a build beside its folder.
  std::string all_of_the_cache() const {
    std::string out;
    for (const auto& entry : fs::directory_iterator(path("cache"))) {
      if (entry.is_regular_file()) out += read_file(entry.path());
    }
    return out;
  }

  ArtefactFacts facts_;
  Store store_;
};

TEST_F(Makers, AVenvGivesPathVariablesAndAnIdentity) {
  const fs::path root = make_fake_venv(path("v"));
  install_fake(root, "engine", "1.2+g837eae6458", {{"engine/__main__.py", ""}});
  const Ready ready = make_venv(context(), "v");
  const fs::path real = fs::canonical(root);
  EXPECT_EQ(ready.root, real);
  EXPECT_EQ(ready.bin, real / "bin");
  EXPECT_EQ(ready.env.at("VIRTUAL_ENV"), real.string());
  EXPECT_EQ(ready.env.at("PYTHONPATH"), "");
  EXPECT_EQ(ready.identity.version, "engine 1.2+g837eae6458");
  EXPECT_EQ(ready.identity.commit, "837eae6458");
  EXPECT_EQ(ready.identity.python, "3.11.2");
  EXPECT_EQ(ready.identity.packages->size(), 1u);
  EXPECT_EQ(ready.identity.hash.size(), 64u);
  EXPECT_THAT(message_of([&] { make_venv(context(), "none"); }),
              HasSubstr((dir_.path() / "none").string() + " is no virtual environment"));
}

TEST_F(Makers, ThroughALinkItIsTheSameArtefact) {
  const fs::path root = make_fake_venv(path("v"));
  fs::create_directory_symlink(root, path("link"));
  const Ready a = make_venv(context(), "v"), b = make_venv(context(), "link");
  const auto difference = verdict::artefact_difference(a.identity, b.identity);
  EXPECT_EQ(a.identity.path, b.identity.path);
  EXPECT_THAT(difference.lines, ::testing::IsEmpty());
}

TEST_F(Makers, ACommandIsItsProgramAndItsFiles) {
  write_script(path("serve"), "#!/bin/sh\n");
  write_file(path("a.py"), "1");
  const auto hash = [&](const std::vector<std::string>& argv) {
    return make_command(context(argv)).identity.hash;
  };
  const std::string first = hash({"./serve", "a.py", "--flag", "none"});
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(hash({"./serve", "a.py", "--other"}), first) << "words that are no files";
  write_file(path("a.py"), "2");
  EXPECT_NE(hash({"./serve", "a.py"}), first);
  EXPECT_EQ(hash({"./none"}), "");
  EXPECT_EQ(hash({}), "");
  EXPECT_EQ(make_command(context({"sh"})).identity.path, fs::canonical("/bin/sh").string());
}

TEST_F(Makers, AProgramOfAVenvBringsItsPackages) {
  const fs::path root = make_fake_venv(path("v"));
  install_fake(root, "engine", "3");
  write_script(root / "bin/serve", "#!/bin/sh\n");
  const Ready ready = make_command(context({"v/bin/serve"}));
  ASSERT_TRUE(ready.identity.packages);
  EXPECT_EQ(ready.identity.packages->front().version, "3");
  EXPECT_TRUE(ready.env.empty()) << "it is started as it always is";
}

TEST_F(Makers, AWheelGetsAnEnvironmentOfItsOwnOnce) {
  if (!can_install()) GTEST_SKIP() << "python3 has neither pip nor ensurepip (python3-venv)";
  const fs::path file = wheel("1.1");
  WheelSource source;
  source.path = file.filename().string();
  source.pip = {"--no-index"};
  const Ready ready = make_wheel(context(), source);
  EXPECT_EQ(ready.identity.version, "engine 1.1");
  EXPECT_TRUE(ready.entries.front()->built);
  BuildStep step;
  step.argv = {(ready.bin / "python").string(), "-m", "engine"};
  EXPECT_EQ(output_of(step, cancel_), "engine\n");
  // Another call finds it.
  Store later(path("cache"), false, cancel_);
  const MakeContext again{later, dir_.path(), dir_.path(), facts_, {"python3", "-m", "engine"}};
  EXPECT_FALSE(make_wheel(again, source).entries.front()->built);
  EXPECT_EQ(make_wheel(again, source).identity.hash, ready.identity.hash);
  // A wheel of the same name with other contents is another artefact; its place is not the first's.
  (void)wheel("1.1", "print('other')\n");
  const Ready other = make_wheel(again, source);
  EXPECT_NE(other.identity.hash, ready.identity.hash);
  EXPECT_NE(other.root, ready.root);
  EXPECT_EQ(verdict::artefact_difference(ready.identity, other.identity).lines.size(), 1u);
}

TEST_F(Makers, AnInstallationThatFailsSaysWhatPipSaid) {
  if (!can_install()) GTEST_SKIP() << "python3 has neither pip nor ensurepip (python3-venv)";
  auto files = distribution("engine", "1.0", {});
  for (auto& [name, text] : files) {
    if (name.ends_with("METADATA"))
      text.insert(text.find("\n\n"), "\nRequires-Dist: nowhere-to-be-found");
  }
  write_file(path("engine-1.0-py3-none-any.whl"), zip_of(files));
  WheelSource source;
  source.path = "engine-1.0-py3-none-any.whl";
  source.pip = {"--no-index", "--find-links=https://me:hunter2@127.0.0.1:9/"};
  const std::string why = why_no_wheel(source);
  EXPECT_THAT(why, HasSubstr("pip"));
  EXPECT_THAT(why, HasSubstr("ended with 1: "));
  EXPECT_THAT(why, HasSubstr("nowhere-to-be-found"));
  EXPECT_THAT(why, Not(HasSubstr("hunter2")));
  EXPECT_THAT(all_of_the_cache(), Not(HasSubstr("hunter2")));
}

TEST_F(Makers, APythonThatCannotMakeEnvironmentsNamesThePackage) {
  // What Debian's python3 is without python3-venv and python3-pip.
  write_script(path("bare"), "#!/bin/sh\ncase \"$*\" in\n*realpath*) echo " +
                                 path("bare").string() + "; echo 3.11.2;;\n*) exit 1;;\nesac\n");
  WheelSource source;
  source.path = wheel("1").filename().string();
  source.python = "./bare";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("install the package python3-venv"));
  source.python = "warmgate-no-python";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("there is no warmgate-no-python in PATH"));
  write_script(path("liar"), "#!/bin/sh\necho hello\n");
  source.python = "./liar";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("does not answer like Python"));
}

TEST_F(Makers, WheelsThatAreNone) {
  WheelSource source;
  source.path = "none-1-py3-none-any.whl";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("no such file"));
  write_file(path("text-1-py3-none-any.whl"), "not a zip");
  source.path = "text-1-py3-none-any.whl";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("it is no zip file"));
  write_file(path("x.zip"), "");
  source.path = "x.zip";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("does not end in .whl"));
  source.path = wheel("1").filename().string();
  source.sha256 = std::string(64, '0');
  EXPECT_THAT(why_no_wheel(source), HasSubstr("not " + source.sha256));
  EXPECT_FALSE(fs::exists(path("cache"))) << "nothing was built of them";
}

TEST_F(Makers, ADownloadIsKeptAndHeldToItsHash) {
  const fs::path file = wheel("2.0");
  WheelSource source;
  source.url = "file://" + file.string() + "?sig=topsecret";
  source.sha256 = std::string(64, '1');
  source.python = "warmgate-no-python";  // what comes after the download is not this test's
  std::string why = why_no_wheel(source);
  EXPECT_THAT(why, HasSubstr("gave a file with sha256 "));
  EXPECT_THAT(why, Not(HasSubstr("topsecret")));
  source.sha256 = trace::sha256_hex(read_file(file));
  EXPECT_THAT(why_no_wheel(source), HasSubstr("warmgate-no-python"));
  // It is there now: the origin may vanish.
  fs::remove(file);
  Store later(path("cache"), false, cancel_);
  EXPECT_THAT(message_of([&] {
                make_wheel({later, dir_.path(), dir_.path(), facts_, {}}, source);
              }),
              HasSubstr("warmgate-no-python"));
  EXPECT_THAT(all_of_the_cache(), Not(HasSubstr("topsecret")));
}

TEST_F(Makers, ACommitIsResolvedThroughATemplate) {
  const fs::path file = wheel("1+gabcdef0");
  WheelSource source;
  source.commit = "abcdef0";
  source.python = "warmgate-no-python";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("give wheel.from"));
  facts_.wheel_url = "file://" + dir_.path().string() + "/engine-1%2Bg{commit}-py3-none-any.whl";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("warmgate-no-python")) << "it was found";
  source.from = "file:///nowhere/engine-{commit}-py3-none-any.whl";
  EXPECT_THAT(why_no_wheel(source),
              HasSubstr("`curl file:///nowhere/engine-abcdef0-py3-none-any.whl` "
                        "ended with"));
}

TEST_F(Makers, ACommitsIndexIsAskedThroughPip) {
  if (std::system("python3 -m pip --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no pip";
  const fs::path index = path("index/abcdef0/engine");
  fs::create_directories(index);
  make_wheel_file(index, "engine", "1.1.dev1", {{"engine/__main__.py", ""}});
  write_file(index / "index.html", "<a href=\"engine-1.1.dev1-py3-none-any.whl\">engine</a>\n");
  WheelSource source;
  source.commit = "abcdef0";
  source.from = "file://" + path("index").string() + "/{commit}";
  EXPECT_THAT(why_no_wheel(source), HasSubstr("which package of it is meant is not known"));
  facts_.package = "engine";
  source.sha256 = std::string(64, '2');
  EXPECT_THAT(why_no_wheel(source), HasSubstr("engine-1.1.dev1-py3-none-any.whl has sha256 "));
}

}  // namespace
}  // namespace warmgate::run::testing
