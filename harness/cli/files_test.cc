// Files that commands are given, to write and to read: what cannot be is said before anything is
// started, and nothing is waited for that may never end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;

class FilesCli : public ::testing::Test {
 protected:
  void SetUp() override { small_ = dir_.write("small.yaml", small_scenario()).string(); }
  TempDir dir_;
  std::string small_;
};

TEST_F(FilesCli, AFileThatIsFullIsFour) {
  for (const char* option : {"--json", "--junit", "--markdown", "--rows"}) {
    const Ran full = warmgate({"run", small_, option, "/dev/full"});
    EXPECT_EQ(full.code, 4) << option;
    EXPECT_THAT(full.err, HasSubstr("/dev/full: No space left")) << option;
    // A failure found outweighs a file lost.
    EXPECT_EQ(warmgate({"run", small_, "--no-expect", option, "/dev/full"}).code, 1) << option;
  }
  EXPECT_EQ(warmgate({"accept", small_, "--rows", "/dev/full"}).code, 4);
  EXPECT_EQ(warmgate({"step", small_, "--rows", "/dev/full"}).code, 128);
}

// Whatever the command and the option: said before anything is started or written.
TEST_F(FilesCli, AFolderThatIsNotThereIsBadUsageAndNothingIsStarted) {
  const std::string mark = (dir_.path() / "started").string();
  const std::string marking = dir_.write("marking.yaml",
                                         "scenario: marking\nabout: x\ntarget:\n  command:\n"
                                         "    argv: [touch, " +
                                             mark + "]\n")
                                  .string();
  ASSERT_NE(warmgate({"run", marking}).code, 2);
  ASSERT_TRUE(fs::remove(mark));  // the scenario does start
  const std::string lost = "/nowhere/at/all", small = (dir_.path() / "small").string();
  const std::string report = dir_.write("report.json", "{}").string();
  std::vector<std::vector<std::string>> calls;
  for (const char* command : {"run", "gate", "ab"}) {
    for (const char* option : {"--json", "--junit", "--markdown", "--rows", "--buildkite"})
      calls.push_back({command, marking, option, lost});
    calls.push_back({command, marking, "--keep", report + "/kept"});
  }
  for (const char* command : {"plan", "keys", "resolve", "step", "explain", "bundle", "probes"})
    calls.push_back({command, marking, "--json", lost});
  calls.push_back({"accept", marking, "--rows", lost});
  calls.push_back({"doctor", "--json", lost});
  calls.push_back({"explain", marking, "--scenario", lost});
  calls.push_back({"bundle", report, "--output", lost});
  for (const char* option : {"--json", "--scenario"})
    calls.push_back({"shrink", "--config", source_path("fixtures/configs/llama-3.1-8b.json"),
                     "--out", small, option, lost});
  for (const std::vector<std::string>& call : calls) {
    const Ran ran = warmgate(call);
    const std::string option = call[call.size() - 2];
    EXPECT_EQ(ran.code, call[0] == "step" ? 128 : 2) << call[0] << " " << option << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(option)) << call[0];
    EXPECT_THAT(ran.err, ::testing::AnyOf(HasSubstr("no folder /nowhere/at"),
                                          HasSubstr("report.json is no folder")))
        << call[0];
    EXPECT_FALSE(fs::exists(mark)) << call[0] << " " << option;
    EXPECT_FALSE(fs::exists(small));
  }
  // A folder below one that is there is made.
  EXPECT_EQ(warmgate({"run", small_, "--keep", (dir_.path() / "new/kept").string()}).code, 0);
}

TEST_F(FilesCli, AFolderIsNoFileToWrite) {
  for (const char* option : {"--json", "--junit", "--markdown", "--rows"}) {
    const Ran ran = warmgate({"run", small_, option, dir_.path().string()});
    EXPECT_EQ(ran.code, 2) << option;
    EXPECT_THAT(ran.err, HasSubstr("is a folder")) << option;
  }
}

TEST_F(FilesCli, AFifoThatNobodyReadsIsSaidAndNotWaitedFor) {
  const std::string fifo = (dir_.path() / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const char* option : {"--json", "--junit", "--markdown", "--rows"}) {
    const Ran ran = warmgate({"run", small_, option, fifo});
    EXPECT_EQ(ran.code, 4) << option;
    EXPECT_THAT(ran.err, HasSubstr("nobody reads it")) << option;
    const Ran read = shell("cat " + fifo + " & " + program_path().string() + " run " + small_ +
                           " " + option + " " + fifo + " >/dev/null; echo code $? >&2; wait");
    EXPECT_THAT(read.err, HasSubstr("code 0")) << option;
    EXPECT_THAT(read.out, HasSubstr("small")) << option;
  }
}

TEST_F(FilesCli, ABundleReplacesNothingButAnOrdinaryFileOfAnotherPlace) {
  const std::string kept = (dir_.path() / "kept").string();
  ASSERT_EQ(warmgate({"run", small_, "--keep", kept}).code, 0);
  const std::string before = slurp(kept + "/bundle.json");
  const std::string fifo = (dir_.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& output :
       {kept + "/bundle.json", kept + "/new.tar.gz", fifo, dir_.path().string()}) {
    const Ran ran = warmgate({"bundle", kept, "-o", output});
    EXPECT_EQ(ran.code, 2) << output << ran.out << ran.err;
  }
  EXPECT_EQ(slurp(kept + "/bundle.json"), before);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_EQ(warmgate({"bundle", kept, "-o", (dir_.path() / "b.tar.gz").string()}).code, 0);
}

TEST_F(FilesCli, AMovedBuildReadsTheFixturesBesideIt) {
  std::string text = small_scenario();
  text.replace(text.find("small-dspark"), 12, "only-here");
  const std::string scenario = dir_.write("moved.yaml", text).string();
  const fs::path program = dir_.path() / "tree/build/bin/warmgate";
  fs::create_directories(program.parent_path());
  std::error_code failed;
  fs::create_hard_link(program_path(), program, failed);
  if (failed) fs::copy_file(program_path(), program);
  for (const char* place : {"fixtures", "build/share/fixtures", "build/share/warmgate/fixtures"}) {
    const fs::path fixtures = dir_.path() / "tree" / place;
    fs::create_directories(fixtures.parent_path());
    fs::copy(source_path("fixtures"), fixtures, fs::copy_options::recursive);
    std::string model = slurp(fixtures / "models/small-dspark.yaml");
    model.replace(model.find("small-dspark"), 12, "only-here");
    std::ofstream(fixtures / "models/only-here.yaml") << model;
    const Ran ran = Running({program.string(), "resolve", scenario}).finish();
    EXPECT_EQ(ran.code, 0) << place << ran.err;
    fs::remove_all(fixtures);
  }
  EXPECT_EQ(warmgate({"resolve", scenario}).code, 2);
}

// It says what it is and which command takes it.
TEST_F(FilesCli, ABundleOrAReportIsNoScenario) {
  const std::string kept = (dir_.path() / "kept").string(),
                    report = (dir_.path() / "r.json").string(),
                    bundle = (dir_.path() / "b.tar.gz").string();
  ASSERT_EQ(warmgate({"run", small_, "--keep", kept, "--json", report}).code, 0);
  ASSERT_EQ(warmgate({"bundle", kept, "-o", bundle}).code, 0);
  for (const char* command : {"ab", "gate", "step", "resolve", "plan", "keys", "accept", "run"}) {
    for (const std::string& path : {bundle, kept, report}) {
      if (command == std::string("run") && path != report) continue;
      const Ran ran = warmgate({command, path});
      EXPECT_EQ(ran.code, command == std::string("step") ? 128 : 2) << command << " " << path;
      EXPECT_THAT(ran.err,
                  HasSubstr(path == report ? "`warmgate bundle " + path : "`warmgate run " + path))
          << command;
    }
  }
}

// Whatever names a file: a pipe or a device may never end, and is not waited for.
TEST_F(FilesCli, AFileThatIsReadAndIsAPipeIsRefused) {
  const std::string fifo = (dir_.path() / "fifo.yaml").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string report = (dir_.path() / "r.json").string();
  warmgate({"run", small_, "--json", report});
  for (const std::string& pipe : {fifo, std::string("/dev/zero")}) {
    for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
             {"run", pipe},
             {"gate", pipe},
             {"gate", small_, "--changed", "@" + pipe},
             {"accept", "--report", pipe},
             {"probes", pipe},
             {"bundle", pipe},
             {"explain", pipe},
             {"shrink", "--config", pipe, "--out", (dir_.path() / "out").string()},
             {"run", small_, "--metrics", pipe},
             {"run", small_, "--contracts", pipe},
             {"probes", report, "--variant", "good", "--check", pipe},
             {"step", small_, "--like", pipe}}) {
      const Ran ran = warmgate(call);
      // A build without RE2 reads no log, and says so first.
      if (call[0] == "explain" && ran.err.find("not available in this build") != ran.err.npos)
        continue;
      EXPECT_EQ(ran.code, call[0] == "step" ? 128 : 2) << call[0] << " " << pipe << ran.err;
      EXPECT_THAT(ran.err, HasSubstr(pipe)) << call[0];
    }
  }
  // A shell's <(…) is held open by somebody.
  const Ran list =
      shell("bash -c '" + program_path().string() + " gate " + small_ + " --changed @<(echo x)'");
  EXPECT_EQ(list.code, 0) << list.err;
}

}  // namespace
}  // namespace warmgate::cli
