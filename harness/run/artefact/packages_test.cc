// Package lists from metadata alone, also where that is broken or hostile.
#include "harness/run/artefact/packages.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "harness/run/artefact/files.h"
#include "harness/run/artefact/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Packages : public ArtefactTest {
 protected:
  std::vector<Installed> installed(const fs::path& venv) const {
    return read_installed(read_venv(venv).site_packages);
  }
};

TEST_F(Packages, AreReadFromTheirMetadata) {
  const fs::path venv = make_fake_venv(path("v"));
  install_fake(venv, "Zeta_Engine", "1.0", {{"zeta/__init__.py", "x = 1\n"}});
  install_fake(venv, "alpha", "2.1.post1");
  const auto all = installed(venv);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].package.name, "alpha");
  EXPECT_EQ(all[1].package.name, "Zeta_Engine") << "not the line below the headers";
  EXPECT_EQ(all[1].package.version, "1.0");
  EXPECT_THAT(all[1].package.changed, IsEmpty());
  EXPECT_EQ(all[1].package.digest.size(), 64u);
  EXPECT_EQ(find_installed(all, "zeta-engine"), &all[1]);
  EXPECT_EQ(find_installed(all, "nothing"), nullptr);
}

TEST_F(Packages, TheSamePackagesElsewhereAreTheSame) {
  const fs::path a = make_fake_venv(path("a")), b = make_fake_venv(path("somewhere/else/b"));
  for (const fs::path& venv : {a, b}) {
    install_fake(venv, "engine", "1.0", {{"engine/main.py", "run()\n"}});
    // What depends on the place: a script with the interpreter's path, compiled code.
    const fs::path record = site_packages(venv) / "engine-1.0.dist-info/RECORD";
    std::ofstream(record, std::ios::app)
        << "../../../bin/engine," << record_hash(venv.string())
        << ",9\nengine/__pycache__/main.cpython-311.pyc,,\n"
        << "engine-1.0.dist-info/direct_url.json," << record_hash(venv.string()) << ",5\n";
  }
  EXPECT_EQ(packages_hash(packages_of(installed(a))), packages_hash(packages_of(installed(b))));
  install_fake(b, "engine", "1.0", {{"engine/main.py", "other()\n"}});
  EXPECT_NE(packages_hash(packages_of(installed(a))), packages_hash(packages_of(installed(b))));
}

TEST_F(Packages, AFileChangedAfterTheInstallationIsNamed) {
  const fs::path venv = make_fake_venv(path("v"));
  install_fake(venv, "engine", "1.0", {{"engine/a.py", "a = 1\n"}, {"engine/b.py", "b = 1\n"}});
  const std::string before = packages_hash(packages_of(installed(venv)));
  const fs::path file = site_packages(venv) / "engine/a.py";
  write_file(file, "a = 2\n");  // as long as before
  const timespec later[2] = {{4102444800, 0}, {4102444800, 0}};
  ::utimensat(AT_FDCWD, file.c_str(), later, 0);
  auto all = installed(venv);
  EXPECT_THAT(all[0].package.changed, ElementsAre("engine/a.py"));
  EXPECT_NE(packages_hash(packages_of(all)), before);
  // Touched, not changed.
  write_file(file, "a = 1\n");
  ::utimensat(AT_FDCWD, file.c_str(), later, 0);
  EXPECT_THAT(installed(venv)[0].package.changed, IsEmpty());
  fs::remove(file);
  write_file(site_packages(venv) / "engine/b.py", "longer than before\n");
  EXPECT_THAT(installed(venv)[0].package.changed, ElementsAre("engine/a.py", "engine/b.py"));
}

TEST_F(Packages, OriginsAndCommits) {
  const fs::path venv = make_fake_venv(path("v"));
  install_fake(venv, "edited", "1");
  write_file(site_packages(venv) / "edited-1.dist-info/direct_url.json",
             R"({"url": "file:///src/edited", "dir_info": {"editable": true}})");
  install_fake(venv, "fromgit", "1");
  write_file(site_packages(venv) / "fromgit-1.dist-info/direct_url.json",
             R"({"url": "https://h/r", "vcs_info": {"vcs": "git", "commit_id": "abcdef0123"}})");
  install_fake(venv, "scm", "0.23.1rc1.dev10+g837eae6458.d20260731");
  install_fake(venv, "short", "1+gabc");
  const auto all = installed(venv);
  EXPECT_TRUE(find_installed(all, "edited")->package.editable);
  EXPECT_EQ(find_installed(all, "edited")->package.origin, "file:///src/edited");
  EXPECT_EQ(find_installed(all, "fromgit")->package.commit, "abcdef0123");
  EXPECT_FALSE(find_installed(all, "fromgit")->package.editable);
  EXPECT_EQ(find_installed(all, "scm")->package.commit, "837eae6458");
  EXPECT_EQ(find_installed(all, "short")->package.commit, "");
}

TEST_F(Packages, TheOwnerOfACommand) {
  const fs::path venv = make_fake_venv(path("v"));
  install_fake(venv, "engine", "1.0", {{"engine/__main__.py", ""}});
  install_fake(venv, "other", "3", {{"enginex.py", ""}});
  std::ofstream(site_packages(venv) / "engine-1.0.dist-info/RECORD", std::ios::app)
      << "../../../bin/serve,sha256=x,1\n";
  const auto all = installed(venv);
  const auto owner = [&](const std::vector<std::string>& argv) {
    const Installed* found = owner_of(all, argv);
    return found ? found->package.name : "";
  };
  EXPECT_EQ(owner({"serve", "--x"}), "engine");
  EXPECT_EQ(owner({"/somewhere/bin/serve"}), "engine");
  EXPECT_EQ(owner({"python3", "-m", "engine.server"}), "engine");
  EXPECT_EQ(owner({"python3", "-u", "-m", "enginex"}), "other");
  EXPECT_EQ(owner({"python3", "script.py", "-m", "engine"}), "") << "that -m is the script's";
  EXPECT_EQ(owner({"rve"}), "");
  EXPECT_EQ(owner({}), "");
}

TEST_F(Packages, BrokenMetadataIsListedAsFarAsItSpeaks) {
  const fs::path site = site_packages(make_fake_venv(path("v")));
  fs::create_directories(site / "empty-4.2.dist-info");
  write_file(site / "old-1.0-py3.11.egg-info", "Name: old\nVersion: 1.0\n");
  write_file(site / "dir-2.egg-info/PKG-INFO", "name:  Dir\r\nVERSION: 2\r\n");
  write_file(site / "~half-1.0.dist-info/METADATA", "Name: half\nVersion: 1\n");
  write_file(site / "evil-1.dist-info/METADATA", std::string(100, '\0') + "\nName\n:\n");
  write_file(site / "evil-1.dist-info/RECORD",
             "\"a,\"\"b\"\",c\",sha256=!!,x\n,,,\n\"unclosed\n../../../../etc/passwd,sha256=AA,1\n"
             "/etc/passwd,sha256=AA,1\n\n");
  write_file(site / "evil-1.dist-info/direct_url.json", "[1, {");
  fs::create_symlink("/dev/zero", site / "endless-1.egg-info");
  ::mkfifo((site / "pipe-1.egg-info").c_str(), 0600);
  const auto all = read_installed(site);
  std::vector<std::string> names;
  for (const Installed& each : all) names.push_back(each.package.name + " " + each.package.version);
  EXPECT_THAT(names, ElementsAre("Dir 2", "empty 4.2", "endless 1", "evil 1", "old 1.0", "pipe 1"));
  EXPECT_EQ(find_installed(all, "evil")->files.front(), "a,\"b\",c");
}

TEST_F(Packages, AVirtualEnvironmentIsOneOrIsSaidNotToBe) {
  const auto why = [&](const fs::path& root) { return message_of([&] { read_venv(root); }); };
  EXPECT_THAT(why(path("none")), HasSubstr("is no virtual environment: No such file"));
  write_file(path("file"), "");
  EXPECT_THAT(why(path("file")), HasSubstr("it is no folder"));
  fs::create_directories(path("plain"));
  EXPECT_THAT(why(path("plain")), HasSubstr("it has no pyvenv.cfg"));
  const fs::path moved = make_fake_venv(path("moved"), "/nowhere/python3");
  EXPECT_THAT(why(moved), HasSubstr("leads to /nowhere/python3, which is not there"));
  const fs::path bare = make_fake_venv(path("bare"));
  fs::remove(bare / "bin/python");
  EXPECT_THAT(why(bare), HasSubstr("it has no bin/python"));
  const fs::path locked = make_fake_venv(path("locked"), path("file"));
  EXPECT_THAT(why(locked), HasSubstr("cannot be executed"));
  const fs::path lib = make_fake_venv(path("lib"));
  fs::remove_all(lib / "lib");
  EXPECT_THAT(why(lib), HasSubstr("site-packages"));
  const fs::path loop = path("loop");
  fs::create_symlink(loop, loop);
  EXPECT_THAT(why(loop), HasSubstr("is no virtual environment"));
}

TEST_F(Packages, ALinkToAnEnvironmentIsThatEnvironment) {
  const fs::path venv = make_fake_venv(path("v"));
  fs::create_directory_symlink(venv, path("link"));
  EXPECT_EQ(read_venv(path("link")).root, fs::canonical(venv));
  EXPECT_EQ(read_venv(venv).version, "3.11.2");
  EXPECT_FALSE(read_venv(venv).sees_system);
}

TEST_F(Packages, ListingsSeeTouchedFilesAndNotBytecode) {
  write_file(path("t/a.py"), "x");
  fs::create_symlink("nowhere", path("t/dangling"));
  const std::string before = listing_hash(path("t"));
  write_file(path("t/__pycache__/a.pyc"), "compiled");
  EXPECT_EQ(listing_hash(path("t")), before);
  write_file(path("t/b.py"), "");
  EXPECT_NE(listing_hash(path("t")), before);
  EXPECT_EQ(listing_hash(path("absent")), listing_hash(path("also absent")));
}

TEST_F(Packages, FilesAreReadToABoundAndNeverWaitedFor) {
  write_file(path("f"), "0123456789");
  EXPECT_EQ(read_bounded(path("f"), 4), "0123");
  EXPECT_EQ(read_bounded(path("f"), 100), "0123456789");
  EXPECT_EQ(read_bounded("/dev/zero", 10), "");
  ::mkfifo(path("p").c_str(), 0600);
  EXPECT_EQ(read_bounded(path("p"), 10), "");
  EXPECT_EQ(sha256_of(path("p")), "");
  EXPECT_EQ(sha256_of(path("f")), trace::sha256_hex("0123456789"));
  write_file(path("e"), "");
  EXPECT_EQ(sha256_of(path("e")), trace::sha256_hex(""));
}

}  // namespace
}  // namespace warmgate::run::testing
