// The small pieces: rows, run folders, what a person pastes into a shell, metrics and contracts
// from outside, and what is started for a variant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "harness/run/doctor.h"
#include "harness/run/needs.h"
#include "harness/run/prepare.h"
#include "harness/run/reproduce.h"
#include "harness/run/rows.h"
#include "harness/run/run_dir.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

fs::path put(const RunDir& dir, const std::string& name, const std::string& text) {
  const fs::path path = dir.path() / name;
  std::ofstream(path) << text;
  return path;
}

TEST(RunDir, IsPrivateAndGoesWithItsContents) {
  fs::path path;
  {
    const RunDir dir("label");
    path = dir.path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u);
    fs::create_directories(path / "a/b");
    put(dir, "a/b/c", "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(RunDir, TwoAreNeverTheSame) {
  const RunDir a("x"), b("x");
  EXPECT_NE(a.path(), b.path());
}

TEST(RunDir, KeptOnRequest) {
  fs::path path;
  {
    const RunDir dir("kept", true);
    path = dir.path();
  }
  EXPECT_TRUE(fs::exists(path));
  fs::remove_all(path);
}

TEST(RunDir, SaysWhichFolderCannotBeMade) {
  const char* old = std::getenv("TMPDIR");
  const std::string before = old != nullptr ? old : "";
  ::setenv("TMPDIR", "/nonexistent/folder", 1);
  try {
    const RunDir dir("x");
    FAIL() << "made a folder under /nonexistent";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/folder"));
  }
  if (old != nullptr) {
    ::setenv("TMPDIR", before.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
}

TEST(Rows, EachRowIsOneLegalLineThatStartsWithItsSchema) {
  const RunDir dir("rows");
  const fs::path path = dir.path() / "deep/rows.jsonl";
  {
    RowWriter rows(path);
    rows.gate("gate", {{"runs", 1}});
    rows.run("ended", {"s", "s.yaml", "A", 2}, {{"output", "half \xff\xfe a\nline"}});
    // What was written so far must be there although nobody closed the writer.
    const std::string text = slurp(path);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  }
  std::istringstream in(slurp(path));
  std::vector<nlohmann::json> seen;
  for (std::string line; std::getline(in, line);) {
    EXPECT_EQ(line.rfind("{\"schema\":\"rows/1.", 0), 0u) << line;
    seen.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1]["variant"], "A");
  EXPECT_EQ(seen[1]["repeat"], 2);
  EXPECT_EQ(seen[1]["state"], "ended");
}

TEST(Rows, WithoutAPathNothingIsWritten) {
  RowWriter rows(fs::path{});
  EXPECT_FALSE(rows.is_open());
  rows.gate("gate");  // must not crash
}

TEST(Rows, APathThatCannotBeWrittenIsNamed) {
  try {
    const RowWriter rows("/proc/no/rows.jsonl");
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/proc/no/rows.jsonl"));
  }
}

TEST(Rows, WhatIsLostIsCountedAndNamed) {
  RowWriter rows("/dev/full");
  rows.gate("gate");
  rows.gate("done");
  const std::string error = rows.finish();
  EXPECT_THAT(error, HasSubstr("/dev/full: No space left on device (2 of 2 rows are missing)"));
  EXPECT_EQ(rows.finish(), "");  // said once

  const RunDir dir("rows");
  RowWriter good(dir.path() / "rows.jsonl");
  good.gate("gate");
  EXPECT_EQ(good.finish(), "");
  good.gate("done");  // closed: must not write into somebody else's descriptor
  const std::string text = slurp(dir.path() / "rows.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Reproduce, QuotesOnlyWhatAShellWouldReadOtherwise) {
  EXPECT_EQ(shell_line({"warmgate", "run", "a/b.yaml"}), "warmgate run a/b.yaml");
  EXPECT_EQ(shell_line({"A[tp=2]"}), "'A[tp=2]'");
  EXPECT_EQ(shell_line({"it's", ""}), "'it'\\''s' ''");
  EXPECT_EQ(shell_line({"$(rm -rf x)", "a b", "~", "*"}), "'$(rm -rf x)' 'a b' '~' '*'");
}

TEST(Reproduce, AShellGivesTheWordsBack) {
  const std::vector<std::string> hostile = {"a'b\"c", "$HOME `id` \\", "new\nline", "-x", "ü #!"};
  const std::string command = "printf '%s\\0' " + shell_line(hostile);
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  ::pclose(pipe);
  std::string expected;
  for (const std::string& word : hostile) expected += word + '\0';
  EXPECT_EQ(out, expected);
}

TEST(Reproduce, NamesEveryChoiceThatChangesTheResult) {
  Options options;
  EXPECT_EQ(reproduce_command("s.yaml", "A", options), "warmgate run s.yaml --variant A");
  EXPECT_EQ(reproduce_command("s.yaml", "A", options, 3),
            "warmgate run s.yaml --variant A --repeat 3 --jobs 1");
  options.expect = false;
  options.jit = jit::Backend::kHost;
  options.no_cache = true;
  options.timeout_s = 2.5;
  options.load.device = "meta";
  options.load.overlays = {"limits.max_num_seqs=4"};
  EXPECT_EQ(reproduce_command("s.yaml", "A[tp=2]", options),
            "warmgate run s.yaml --variant 'A[tp=2]' --no-expect --device meta --set "
            "limits.max_num_seqs=4 --timeout 2.5 --jit host --no-cache");
}

TEST(Prepare, OneEngineARankWithItsConfigurationAndSharedMemory) {
  scenario::Scenario scenario;
  scenario.name = "s/../x";
  scenario::Variant variant;
  variant.name = "A[tp=2]";
  variant.ranks.resize(2);
  variant.ranks[1].seed = 7;
  variant.target.deadline_s = {{"", 5}, {"warmup", 9}};
  PrepareOptions options;
  options.engine = "/bin/true";
  options.deadline_scale = 2;
  options.timeout_s = 3;
  fs::path dir;
  {
    const Prepared prepared = prepare(scenario, variant, options);
    dir = prepared.dir.path();
    EXPECT_EQ(dir.parent_path(), temp_root());
    ASSERT_EQ(prepared.spec.workers.size(), 2u);
    const target::WorkerSpec& one = prepared.spec.workers[1];
    EXPECT_EQ(one.rank, 1);
    ASSERT_EQ(one.inherit_fds.size(), 1u);
    struct stat info {};
    ASSERT_EQ(::fstat(one.inherit_fds[0], &info), 0);
    EXPECT_EQ(info.st_size, collectives_bytes(2));
    EXPECT_EQ(info.st_size, 1'060'864);  // the same figure is in the engine's test
    const auto config = scenario::resolved_from_json(nlohmann::json::parse(slurp(one.argv[2])));
    EXPECT_EQ(config.seed, 7);
    EXPECT_EQ(prepared.spec.deadlines.default_phase_s, 5);
    EXPECT_EQ(prepared.spec.deadlines.phase_s.at("warmup"), 9);
    EXPECT_EQ(prepared.spec.deadlines.scale, 2);
    EXPECT_EQ(prepared.spec.deadlines.total_s, 3);
  }
  EXPECT_FALSE(fs::exists(dir));
}

TEST(Prepare, ACommandRunsWhereItsScenarioIs) {
  scenario::Scenario scenario;
  scenario.name = "s";
  scenario.path = "/srv/scenarios/s.yaml";
  scenario::Variant variant;
  variant.name = "A";
  variant.target.kind = scenario::Target::Kind::kCommand;
  variant.target.argv = {"tools/start", "$HOME", "a b"};
  Prepared prepared = prepare(scenario, variant, {});
  ASSERT_EQ(prepared.spec.workers.size(), 1u);
  EXPECT_EQ(fs::path(prepared.spec.workers[0].cwd), fs::path("/srv/scenarios/"));
  EXPECT_THAT(prepared.spec.workers[0].argv,
              ElementsAre("/srv/scenarios/tools/start", "$HOME", "a b"));
  variant.target.argv = {"python3"};
  variant.target.cwd = "sub";
  prepared.spec.workers.clear();
  prepare_command(scenario, variant, prepared);
  EXPECT_EQ(prepared.spec.workers[0].cwd, "/srv/scenarios/sub");
  EXPECT_EQ(prepared.spec.workers[0].argv[0], "python3");
}

TEST(Prepare, WithoutAnEngineTheMachineIsAtFault) {
  scenario::Variant variant;
  variant.ranks.resize(1);
  EXPECT_THROW(prepare({}, variant, {}), std::runtime_error);
}

TEST(Needs, NamesAFileThatIsNotThere) {
  scenario::Needs needs;
  needs.files = {"/", "/nowhere/engine"};
  EXPECT_EQ(unmet_need(needs, {}), "needs /nowhere/engine, which is not there");
  needs.files = {"/"};
  EXPECT_EQ(unmet_need(needs, {}), "");
}

TEST(Needs, NamesTheNumbers) {
  const Gpu h200{"H200", 139.8, 9, 0}, small{"A10", 22.5, 8, 6};
  EXPECT_EQ(unmet_need({}, {}), "");
  scenario::Needs needs;
  needs.gpus = 2;
  EXPECT_EQ(unmet_need(needs, {}), "needs 2 GPU(s); this machine has 0");
  EXPECT_EQ(unmet_need(needs, {h200, small}), "");
  needs.gpu_gib = 80;
  EXPECT_THAT(unmet_need(needs, {h200, small}), HasSubstr("2 GPU(s) of 80 GiB"));
  EXPECT_THAT(unmet_need(needs, {h200, small}), HasSubstr("has 2, 1 of which fit"));
  needs.gpus = 1;
  needs.arch = {"sm_90a"};
  EXPECT_EQ(unmet_need(needs, {small, h200}), "");
  needs.arch = {"sm_100a", "sm_120a"};
  EXPECT_THAT(unmet_need(needs, {h200}), HasSubstr("sm_100a or sm_120a"));
}

TEST(Needs, AGpuIsOneGpuWhereOnlyItsSizeIsGiven) {
  scenario::Needs needs;
  needs.gpu_gib = 1;
  EXPECT_THAT(unmet_need(needs, {}), HasSubstr("needs 1 GPU"));
}

TEST(Doctor, SaysWhyAndWhatItCosts) {
  Options options;
  options.engine = "/nonexistent/engine";
  bool engine_missing = false;
  for (const Capability& capability : doctor(options)) {
    EXPECT_FALSE(capability.why.empty()) << capability.name;
    EXPECT_FALSE(capability.affects.empty()) << capability.name;
    if (capability.name == "warmgate-engine") {
      engine_missing = capability.state == Capability::State::kMissing;
    }
  }
  EXPECT_TRUE(engine_missing);
}

}  // namespace
}  // namespace warmgate::run
