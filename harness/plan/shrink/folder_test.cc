// What is written: the folder, the tokenizer stub, the start lines, the scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "harness/plan/shrink/testing.h"
#include "harness/scenario/scenario.h"

namespace warmgate::plan::shrink {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / ("shrink." + std::to_string(::getpid()));
    fs::remove_all(base_);
    fs::create_directories(base_ / "original");
    std::ofstream(base_ / "original" / "config.json") << fixture_text("deepseek-v4-flash-0731");
    request_.config = base_ / "original" / "config.json";
    request_.out = base_ / "small";
  }
  void TearDown() override { fs::remove_all(base_); }
  std::string read(const fs::path& path) const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string write_problem() const {
    try {
      write_folder(shrink(request_), request_);
    } catch (const scenario::ScenarioError& error) {
      return error.problems().front().text();
    }
    return "";
  }
  std::set<std::string> names(const fs::path& folder) const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename());
    return out;
  }
  fs::path base_;
  Request request_;
};

TEST_F(Folder, HoldsAModelThatReadsAsOne) {
  request_.tokenizer_stub = true;
  EXPECT_EQ(write_problem(), "");
  EXPECT_EQ(names(request_.out), (std::set<std::string>{"config.json", "tokenizer.json",
                                                        "tokenizer_config.json", "trtllm.yml"}));
  // The folder's own config is taken as it is.
  Request again;
  again.config = request_.out / "config.json";
  EXPECT_TRUE(shrink(again).changes.empty());
}

TEST_F(Folder, NeverOverwritesWhatIsThere) {
  EXPECT_EQ(write_problem(), "");
  EXPECT_THAT(write_problem(), HasSubstr("is not empty; --force"));
  std::ofstream(request_.out / "mine.txt") << "mine";
  request_.force = true;
  EXPECT_EQ(write_problem(), "");
  EXPECT_EQ(read(request_.out / "mine.txt"), "mine");
  EXPECT_EQ(names(request_.out).size(), 3u);  // no half-written file stays
}

TEST_F(Folder, NeverTouchesTheOriginal) {
  const std::string before = read(request_.config);
  request_.force = true;
  request_.out = base_ / "original";
  EXPECT_THAT(write_problem(), HasSubstr("is the folder of the config itself"));
  request_.out = base_ / "small" / ".." / "original";
  fs::create_directories(base_ / "small");
  EXPECT_THAT(write_problem(), HasSubstr("is the folder of the config itself"));
  // A folder of links, as download caches are.
  request_.out = base_ / "links";
  fs::create_directories(request_.out);
  fs::create_symlink(request_.config, request_.out / "config.json");
  EXPECT_EQ(write_problem(), "");
  EXPECT_FALSE(fs::is_symlink(request_.out / "config.json"));
  EXPECT_EQ(read(request_.config), before);
}

TEST_F(Folder, AFileInItsPlaceIsRefused) {
  std::ofstream(base_ / "small") << "x";
  EXPECT_THAT(write_problem(), HasSubstr("is there and no folder"));
  request_.out = base_ / "small" / "below";
  EXPECT_THROW(write_folder(shrink(request_), request_), std::runtime_error);
}

TEST_F(Folder, TheScenarioStandsBeside) {
  request_.scenario = base_ / "gate.yaml";
  EXPECT_EQ(write_problem(), "");
  const std::string text = read(request_.scenario);
  EXPECT_THAT(text, HasSubstr("scenario: starts-small-deepseek-v4\n"));
  EXPECT_THAT(text, HasSubstr("    with: [weightless]\n"));
  EXPECT_THAT(text, HasSubstr("    model: \"" + request_.out.string() + "\"\n"));
  EXPECT_THAT(text, HasSubstr("figures: {drafts: \"> 0\"}"));
  EXPECT_THAT(text, Not(HasSubstr("accepted_tokens")));
  request_.out = base_ / "other";
  EXPECT_THAT(write_problem(), HasSubstr("gate.yaml: is there already"));
  EXPECT_FALSE(fs::exists(request_.out));
  request_.preset = "tgi";
  EXPECT_THAT(write_problem(), HasSubstr("--preset 'tgi' cannot be started without weights"));
}

TEST_F(Folder, TheScenarioIsOne) {
  request_.scenario = base_ / "gate.yaml";
  request_.force = true;
  for (const std::string preset : {"vllm", "sglang", "trtllm"}) {
    for (const std::string name : {"deepseek-v4-flash-0731", "llama-3.1-8b", "deepseek-v3"}) {
      std::ofstream(request_.config) << fixture_text(name);
      request_.preset = preset;
      request_.parallel = {2, name == "llama-3.1-8b" ? 1 : 4};
      EXPECT_EQ(write_problem(), "");
      try {
        const scenario::Scenario loaded = scenario::load_scenario(request_.scenario, {});
        EXPECT_EQ(loaded.variants.size(), 1u);
      } catch (const scenario::ScenarioError& error) {
        ADD_FAILURE() << preset << ' ' << name << ": " << error.problems().front().text();
      }
    }
  }
}

TEST(TokenizerStub, HasEveryByteOnceAndTheSpecialTokensWhereTheyBelong) {
  for (const std::string& name : fixture_names()) {
    Complaints complaints(name);
    const auto files = tokenizer_stub(fixture(name), complaints);
    ASSERT_TRUE(complaints.empty()) << name;
    const Json tokenizer = Json::parse(files.at("tokenizer.json"));
    const Json& vocabulary = tokenizer.at("model").at("vocab");
    std::set<std::int64_t> ids;
    for (const auto& [text, id] : vocabulary.items()) ids.insert(id.get<std::int64_t>());
    EXPECT_EQ(ids.size(), vocabulary.size()) << name;
    EXPECT_EQ(vocabulary.size(), 256 + tokenizer.at("added_tokens").size()) << name;
    const Json config = fixture(name);
    for (const Json& token : tokenizer.at("added_tokens"))
      EXPECT_EQ(vocabulary.at(token.at("content").get<std::string>()), token.at("id"));
    if (config.at("eos_token_id").is_number()) {
      EXPECT_EQ(
          vocabulary.at(
              Json::parse(files.at("tokenizer_config.json")).at("eos_token").get<std::string>()),
          config.at("eos_token_id"));
    }
    // openai/gpt-2: a blank is U+0120, a line feed U+010A.
    EXPECT_TRUE(vocabulary.contains("\u0120") && vocabulary.contains("\u010a"));
  }
}

TEST(TokenizerStub, VocabulariesTooSmallAndIdsOutside) {
  Json config = fixture("llama-3.1-8b");
  Request request;
  request.tokenizer_stub = true;
  config["vocab_size"] = 200;
  EXPECT_THAT(problems_of(config_text(config), request), HasSubstr("bos_token_id"));
  config["bos_token_id"] = config["eos_token_id"] = nullptr;
  EXPECT_THAT(problems_of(config_text(config), request), HasSubstr("vocab_size: 200 is too small"));
  config["vocab_size"] = 256;
  EXPECT_EQ(problems_of(config_text(config), request), "");
  config["pad_token_id"] = -1;
  EXPECT_EQ(problems_of(config_text(config), request), "");
  config["eos_token_id"] = {1, "x"};
  EXPECT_THAT(problems_of(config_text(config), request), HasSubstr("eos_token_id[1]"));
}

TEST(StartLines, WordsAreQuotedAndRanksAreGiven) {
  Structure s;
  s.draft = {{"mla", "moe"}};
  const auto lines = start_lines(s, {"/tmp/it's small", {2, 4}, false, 0});
  const std::string vllm = shell_text(lines.at(0));
  EXPECT_THAT(vllm, HasSubstr("vllm serve '/tmp/it'\\''s small' --load-format dummy "
                              "--skip-tokenizer-init --tensor-parallel-size 2 "
                              "--enable-expert-parallel --data-parallel-size 2"));
  EXPECT_THAT(vllm, HasSubstr(R"('{"method": "mtp", "num_speculative_tokens": 1}')"));
  EXPECT_THAT(shell_text(lines.at(1)), HasSubstr("--tp-size 2 --ep-size 4"));
  int without = 0;
  for (const StartLine& line : lines) {
    if (!line.command.empty()) continue;
    ++without;
    EXPECT_THAT(line.note, HasSubstr("not applicable")) << line.preset;
    EXPECT_EQ(shell_text(line), "");
  }
  EXPECT_EQ(without, 3);
  EXPECT_EQ(lines.size(), 6u);
}

}  // namespace
}  // namespace warmgate::plan::shrink
