// `warmgate shrink` as its users meet it: exit codes, what is printed, what is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ShrinkCli : public ::testing::Test {
 protected:
  std::string config(const std::string& name) const {
    return source_path("fixtures/configs/" + name + ".json").string();
  }
  Ran shrink(std::vector<std::string> more, const std::string& name = "deepseek-v4-flash-0731") {
    std::vector<std::string> words = {"shrink", "--config", config(name), "--out", out_};
    words.insert(words.end(), more.begin(), more.end());
    return warmgate(words);
  }
  TempDir dir_;
  std::string out_ = (dir_.path() / "small").string();
};

TEST_F(ShrinkCli, SaysWhatItDidWhatIsCoveredAndHowToStart) {
  const Ran ran = shrink({"--tokenizer", "stub"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  for (const char* part :
       {"7 layers of 43 and 3 draft layers, 16 experts of 256", "[40,41,42] -> [4,5,6]",
        "experts gate, up, down", "a start of it covers", "c4a+moe (tapped)",
        "it can no longer show", "accepted drafts", "never accepted > 0", "vllm serve ",
        "sglang.launch_server", "trtllm-serve", "llamacpp", "not applicable"})
    EXPECT_THAT(ran.out, HasSubstr(part));
  EXPECT_TRUE(fs::exists(out_ + "/config.json"));
  EXPECT_TRUE(fs::exists(out_ + "/tokenizer.json"));
  // What it made is small already.
  const Ran again =
      warmgate({"shrink", "--config", out_ + "/config.json", "--out", out_ + ".again"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(slurp(out_ + "/config.json"), slurp(out_ + ".again/config.json"));
}

TEST_F(ShrinkCli, Json) {
  const Ran ran = shrink({"--json", "-", "--tp", "2"}, "qwen3-30b-a3b");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("schema"), "shrink/1.0");
  EXPECT_EQ(json.at("layers").at("after"), 2);
  double sum = 0;
  for (const auto& item : json.at("weights").at("items")) sum += item.at("bytes").get<double>();
  EXPECT_DOUBLE_EQ(sum, json.at("weights").at("bytes").get<double>());
  EXPECT_LT(json.at("weights").at("bytes_per_rank"), json.at("weights").at("bytes"));
  EXPECT_THAT(json.at("start").at(0).at("argv"), ::testing::Contains("--tensor-parallel-size"));
}

TEST_F(ShrinkCli, WeightsThatDoNotFitAreOneAndNothingIsWritten) {
  const Ran ran = shrink({"--memory", "2GiB"});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("does not fit"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(ShrinkCli, BadUsageIsTwo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--memory", "16"},
                                             {"--memory", "lots"},
                                             {"--tp", "0"},
                                             {"--tp", "x"},
                                             {"--tokenizer", "real"},
                                             {"--experts", ""},
                                             {"--per-kind", "0"},
                                             {"--nonsense"},
                                             {"--tp", "3"},
                                             {"--ep", "7"},
                                             {"--scenario", out_ + ".yaml", "--preset", "tgi"}}) {
    const Ran ran = shrink(words);
    EXPECT_EQ(ran.code, 2) << ::testing::PrintToString(words) << ran.out << ran.err;
    EXPECT_THAT(ran.err, Not(IsEmpty()));
    EXPECT_FALSE(fs::exists(out_));
  }
  EXPECT_EQ(warmgate({"shrink", "--out", out_}).code, 2);
  EXPECT_EQ(warmgate({"shrink", "--config", config("llama-3.1-8b")}).code, 2);
}

TEST_F(ShrinkCli, AConfigThatIsNotUnderstoodIsTwoAndNamesTheKey) {
  const fs::path odd =
      dir_.write("odd.json", R"({"model_type": "llama", "num_hidden_layers": "x"})");
  const Ran ran = warmgate({"shrink", "--config", odd.string(), "--out", out_});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("odd.json: num_hidden_layers: is '\"x\"'"));
  EXPECT_THAT(ran.err, Not(HasSubstr("terminate")));
  EXPECT_FALSE(fs::exists(out_));
  EXPECT_EQ(warmgate({"shrink", "--config", "/dev/null", "--out", out_}).code, 2);
}

TEST_F(ShrinkCli, AFullFolderAndOneThatCannotBeAreTwo) {
  dir_.write("small/mine.txt", "mine");
  const Ran full = shrink({});
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("is not empty; --force"));
  EXPECT_EQ(shrink({"--force"}).code, 0);
  EXPECT_EQ(slurp(out_ + "/mine.txt"), "mine");
  out_ += "/mine.txt/below";
  const Ran below = shrink({});
  EXPECT_EQ(below.code, 2);
  EXPECT_THAT(below.err, HasSubstr("mine.txt is no folder"));
}

// All files or none, and none of them over another.
TEST_F(ShrinkCli, OutputsThatCannotBeLeaveNothingBehind) {
  const std::string file = dir_.write("a file", "mine").string();
  const std::string folder = (dir_.path() / "a folder").string();
  fs::create_directory(folder);
  for (const std::string& scenario :
       {std::string("/nowhere/at/all.yaml"), file + "/below.yaml", folder, file,
        out_ + "/config.json", out_ + "/./x/../config.json", out_ + "/trtllm.yml",
        out_ + "/none/gate.yaml"}) {
    const Ran ran = shrink({"--scenario", scenario});
    EXPECT_EQ(ran.code, 2) << scenario << ran.out << ran.err;
    EXPECT_FALSE(fs::exists(out_)) << scenario;
  }
  EXPECT_EQ(slurp(file), "mine");
  fs::create_directory(out_);
  for (const char* option : {"--json", "--scenario"}) {
    EXPECT_EQ(shrink({option, out_ + "/config.json"}).code, 2) << option;
    EXPECT_TRUE(fs::is_empty(out_));
  }
  EXPECT_EQ(shrink({"--scenario", out_ + "/gate.yaml"}).code, 0);
  EXPECT_THAT(slurp(out_ + "/gate.yaml"), HasSubstr("scenario: "));
  EXPECT_THAT(slurp(out_ + "/config.json"), HasSubstr("num_hidden_layers"));
  for (const auto& entry : fs::directory_iterator(out_))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".new."))) << entry.path();
  out_ += "-2/deep";
  EXPECT_EQ(shrink({"--scenario", out_ + "/gate.yaml"}).code, 0);
}

}  // namespace
}  // namespace warmgate::cli
