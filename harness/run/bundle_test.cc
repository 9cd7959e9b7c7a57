// What a bundle holds, what it leaves out, and what a hostile one may not do.
#include "harness/run/bundle.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/run/archive.h"
#include "harness/run/bundle_text.h"
#include "harness/run/json_text.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const char* kYaml =
    "scenario: kept\nabout: x\ntarget:\n  command:\n    argv: [./go.sh, data.txt]\n";

class Bundles : public ::testing::Test {
 protected:
  // A kept folder of one scenario without a run.
  fs::path keep() {
    write_whole(dir_.path() / "in/kept.yaml", kYaml);
    write_whole(dir_.path() / "in/go.sh", "#!/bin/sh\n");
    fs::permissions(dir_.path() / "in/go.sh", fs::perms::owner_exec, fs::perm_options::add);
    write_whole(dir_.path() / "in/data.txt", "a prompt");
    scenario_ = scenario::load_scenario(dir_.path() / "in/kept.yaml");
    trace_.events.push_back(trace::harness_event(
        "request", {{"id", 1}, {"ok", true}, {"prompt", "tell me"}, {"prompt_tokens", 7}}));
    Kept kept;
    Options options;
    options.probes = {"cuda", "python"};
    kept.call = call_json("run", {scenario_.path}, {}, options);
    kept.environment = {{"schema", "environment/1.0"}, {"caches", json::array()}};
    kept.report = "{\"schema\": \"report/1.1\"}\n";
    kept.scenarios = {&scenario_};
    kept.runs = {
        {"kept",
         "default",
         0,
         &trace_,
         {{0, "stderr", 40, "Received request x: prompt: 'tell me', params: 1\n", "", {}}}}};
    write_kept(dir_.path() / "kept", kept);
    return dir_.path() / "kept";
  }

  std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const scenario::ScenarioError& error) {
      return error.problems().front().text();
    }
    return "";
  }

  // The kept folder, spoilt, packed without looking.
  std::string open_spoilt(const std::function<void(const fs::path&, json&)>& spoil,
                          bool list = true) {
    const fs::path kept = keep();
    json manifest = json::parse(read_whole(kept / "bundle.json"));
    spoil(kept, manifest);
    if (list) {
      manifest["files"] = json::array();
      for (const auto& entry : fs::recursive_directory_iterator(kept)) {
        const std::string name = entry.path().lexically_relative(kept).string();
        if (entry.is_regular_file() && name != "bundle.json")
          manifest["files"].push_back(
              {{"path", name}, {"sha256", trace::sha256_hex(read_whole(entry.path()))}});
      }
    }
    write_whole(kept / "bundle.json", manifest.dump());
    pack(kept, dir_.path() / "spoilt.tar");
    return refusal([&] { (void)open_bundle(dir_.path() / "spoilt.tar"); });
  }

  RunDir dir_{"test"};
  scenario::Scenario scenario_;
  trace::Trace trace_;
};

TEST_F(Bundles, HoldWhatRepeatsTheRunAndNoMore) {
  const fs::path kept = keep();
  write_whole(kept / "caches/triton/x", "cache");
  write_whole(kept / "runs/kept.default.0/core.123", "core");
  write_whole(kept / "prompts/p.jsonl", "prompt");
  write_whole(kept / "notes.txt", "mine");
  fs::create_symlink("/etc/passwd", kept / "runs/link");
  const fs::path file = dir_.path() / "b.tar.gz";
  const Bundled made = make_bundle(kept, file, {}, {});
  EXPECT_THAT(made.left_out, Contains(HasSubstr("--with caches")));
  EXPECT_THAT(made.left_out, Contains(HasSubstr("--with cores")));
  EXPECT_THAT(made.left_out, Contains(HasSubstr("--with prompts")));
  EXPECT_THAT(made.left_out, Contains(HasSubstr("a link")));
  EXPECT_THAT(made.left_out, Contains(HasSubstr("data.txt: named by a command")));
  EXPECT_THAT(made.left_out, Contains(HasSubstr("data.txt: name it by that path")));
  const OpenBundle open = open_bundle(file);
  EXPECT_EQ(open.verb, "run");
  EXPECT_THAT(open.options.probes, ::testing::ElementsAre("cuda", "python"));
  ASSERT_EQ(open.scenarios.size(), 1u);
  EXPECT_EQ(read_whole(open.scenarios[0]), kYaml);
  const fs::path folder = open.scenarios[0].parent_path();
  EXPECT_NE(fs::status(folder / "go.sh").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_FALSE(fs::exists(folder / "data.txt"));
  EXPECT_THAT(open.missing, ::testing::ElementsAre("data.txt"));
  EXPECT_THAT(refusal([&] { refuse_missing(open, file); }),
              HasSubstr("a command names 'data.txt', which is neither in the bundle nor here"));
  for (const char* part : {"caches", "prompts", "notes.txt", "runs/link"})
    EXPECT_FALSE(fs::exists(open.root / part)) << part;
  const std::string trace = read_whole(open.root / "runs/kept.default.0/trace.jsonl");
  EXPECT_THAT(trace, Not(HasSubstr("tell me")));
  EXPECT_THAT(trace, HasSubstr("prompt_tokens\":7"));
  EXPECT_EQ(read_whole(open.root / "runs/kept.default.0/rank0.stderr.log"),
            "Received request x: prompt: [prompt], params: 1\n");

  const Bundled all = make_bundle(kept, dir_.path() / "all.tar", {true, true, true}, {});
  const OpenBundle whole = open_bundle(all.file);
  EXPECT_TRUE(fs::exists(whole.root / "caches/triton/x"));
  EXPECT_TRUE(fs::exists(whole.root / "runs/kept.default.0/core.123"));
  EXPECT_THAT(read_whole(whole.root / "runs/kept.default.0/trace.jsonl"), HasSubstr("tell me"));
}

TEST_F(Bundles, ThatAreNoneAreRefused) {
  EXPECT_THAT(refusal([&] { (void)make_bundle(dir_.path(), "", {}, {}); }),
              HasSubstr("no folder that --keep"));
  EXPECT_THAT(refusal([&] { (void)make_bundle(dir_.path() / "no", "", {}, {}); }),
              HasSubstr("no such"));
  write_whole(dir_.path() / "x.json", "[]");
  EXPECT_THAT(refusal([&] { (void)make_bundle(dir_.path() / "x.json", "", {}, {}); }),
              HasSubstr("not a JSON report"));
  write_whole(dir_.path() / "x.json", "{\"schema\":\"report/1.0\"}");
  EXPECT_THAT(refusal([&] { (void)make_bundle(dir_.path() / "x.json", "", {}, {}); }),
              HasSubstr("older"));
  write_whole(
      dir_.path() / "x.json",
      "{\"schema\":\"report/1.1\",\"call\":{\"verb\":\"run\"},\"scenarios\":[{\"variants\":3}]}");
  EXPECT_NE(refusal([&] { (void)make_bundle(dir_.path() / "x.json", "", {}, {}); }), "");
  write_whole(dir_.path() / "other/mine.txt", "x");
  EXPECT_THROW(check_keep_folder(dir_.path() / "other"), std::runtime_error);
  write_whole(dir_.path() / "t/x", "x");
  pack(dir_.path() / "t", dir_.path() / "t.tar");
  EXPECT_TRUE(is_bundle(dir_.path() / "t.tar"));
  EXPECT_THAT(refusal([&] { (void)open_bundle(dir_.path() / "t.tar"); }),
              HasSubstr("no bundle.json"));
}

TEST_F(Bundles, AManifestMaySayAnything) {
  const auto call = [&](const char* key, const json& value) {
    return open_spoilt([&](const fs::path&, json& m) { m["call"][key] = value; });
  };
  EXPECT_EQ(open_spoilt([](const fs::path&, json&) {}), "");
  for (const char* path :
       {"../../etc/passwd", "/etc/passwd", "", "trees/../bundle.json", "no.yaml"})
    EXPECT_THAT(call("scenarios", {path}), HasSubstr("no file of the bundle")) << path;
  EXPECT_THAT(call("scenarios", json::array()), HasSubstr("no scenario"));
  EXPECT_THAT(call("metrics", {"/etc/passwd"}), HasSubstr("no file of the bundle"));
  EXPECT_THAT(call("verb", "step"), HasSubstr("none of"));
  EXPECT_THAT(call("repeat", "often"), HasSubstr("another type"));
  EXPECT_EQ(call("repeat", 1000000000), "");
  EXPECT_THAT(open_spoilt([](const fs::path&, json& m) { m["schema"] = "bundle/2.0"; }),
              HasSubstr("bundle/2.0"));
  EXPECT_THAT(open_spoilt([](const fs::path&, json& m) { m = json::array(); }, false),
              HasSubstr("schema"));
  EXPECT_THAT(open_spoilt([](const fs::path&, json& m) { m["call"] = 3; }), HasSubstr("no call"));
  EXPECT_THAT(
      open_spoilt([](const fs::path& f, json&) { write_whole(f / "extra.txt", "x"); }, false),
      HasSubstr("not listed"));
  EXPECT_THAT(
      open_spoilt([](const fs::path& f, json&) { write_whole(f / "report.json", "x"); }, false),
      HasSubstr("SHA-256"));
  EXPECT_THAT(open_spoilt([](const fs::path& f, json&) {
                fs::create_symlink("/etc/passwd", f / "trees/l");
              }),
              HasSubstr("neither a file nor a folder"));
}

TEST(BundleText, PromptsGoCountsStay) {
  EXPECT_EQ(without_prompts("prompt: 'it\\'s', n: 1"), "prompt: [prompt], n: 1");
  EXPECT_EQ(without_prompts("prompt_token_ids: [1, [2], 3], prompt_tokens: 3"),
            "prompt_token_ids: [prompt], prompt_tokens: 3");
  EXPECT_EQ(without_prompts(R"({"messages": [{"role": "x"}], "max": 1})"),
            R"({"messages": [prompt], "max": 1})");
  EXPECT_EQ(without_prompts("prompt throughput: 12.0 tokens/s, prompt: 12"),
            "prompt throughput: 12.0 tokens/s, prompt: 12");
  EXPECT_EQ(without_prompts("prompt: 'cut"), "prompt: [prompt]");
  EXPECT_EQ(without_prompts(std::string(100000, ':')), std::string(100000, ':'));
  json value = {{"prompt", ""}, {"n", 1}, {"deep", {{"completion", "text"}}}};
  EXPECT_TRUE(drop_prompts(value));
  EXPECT_EQ(value, (json{{"prompt", ""}, {"n", 1}, {"deep", {{"completion", "[prompt]"}}}}));
  EXPECT_FALSE(drop_prompts(value));
}

}  // namespace
}  // namespace warmgate::run
