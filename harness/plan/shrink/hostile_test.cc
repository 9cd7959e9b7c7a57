// Configs that are wrong, odd or made to hurt: each is refused by the name of what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/plan/shrink/testing.h"

namespace warmgate::plan::shrink {
namespace {

using ::testing::HasSubstr;

TEST(ShrinkHostile, NoJsonAtAll) {
  EXPECT_THAT(problems_of(""), HasSubstr("is no JSON"));
  EXPECT_THAT(problems_of("{\n  \"a\": 1,\n  oops\n}"), HasSubstr("config.json:3:3: is no JSON"));
  EXPECT_THAT(problems_of("[1, 2]"), HasSubstr("is no JSON object"));
  EXPECT_THAT(problems_of("{\"a\": \"\xff\"}"), HasSubstr("is no JSON"));
  EXPECT_THAT(problems_of("{\"a\": 1e999}"), HasSubstr("is no JSON"));
  EXPECT_THAT(problems_of("{\"a\": 01}"), HasSubstr("is no JSON"));
  EXPECT_THAT(problems_of("{\"a\": 1} x"), HasSubstr("is no JSON"));
  EXPECT_THAT(problems_of(std::string("{\"a\": \"\0\"}", 10)), HasSubstr("is no JSON"));
}

TEST(ShrinkHostile, DeepNesting) {
  const std::string deep(100000, '[');
  EXPECT_THAT(problems_of("{\"a\": " + deep), HasSubstr("nested deeper"));
  std::string maps;
  for (int i = 0; i < 50000; ++i) maps += "{\"a\":";
  EXPECT_THAT(problems_of(maps), HasSubstr("nested deeper"));
  std::string near = "1";
  for (int i = 0; i < kMostDepth - 1; ++i) near = "[" + near + "]";
  EXPECT_THAT(problems_of("{\"a\": " + near + "}"), HasSubstr("model_type: is missing"));
}

TEST(ShrinkHostile, KeysThatComeTwice) {
  EXPECT_THAT(problems_of(R"({"model_type": "llama", "model_type": "qwen3"})"),
              HasSubstr("model_type: comes twice"));
  EXPECT_THAT(problems_of(R"({"a": {"b": 1, "b": 2}})"), HasSubstr("b: comes twice"));
}

TEST(ShrinkHostile, UnknownModels) {
  EXPECT_THAT(problems_of("{}"), HasSubstr("model_type: is missing"));
  EXPECT_THAT(problems_of(R"({"model_type": "lama"})"), HasSubstr("did you mean llama"));
  EXPECT_THAT(problems_of(R"({"model_type": 7})"), HasSubstr("model_type: is '7'"));
  EXPECT_THAT(problems_of(R"({"model_type": "x\u001b[31m"})"), ::testing::Not(HasSubstr("\x1b")));
}

TEST(ShrinkHostile, UnknownStructureIsNamedAndNotGuessed) {
  const std::vector<std::pair<const char*, Json>> odd = {
      {"kv_source_layer_ids", Json({1, 2})},
      {"engram_layer_ids", Json({1})},
      {"dspark_n_routed_experts", 128},
      {"no_rope_layers", Json({1, 1, 0})},
      {"cross_attention_layers", Json({3})},
      {"mtp_num_hidden_layers", 1},
      {"text_config", Json({{"hidden_size", 1}})},
      {"num_kv_shared_layers", 10}};
  for (const auto& [key, value] : odd) {
    Json config = fixture("llama-3.1-8b");
    config[key] = value;
    EXPECT_THAT(problems_of(config_text(config)), HasSubstr(std::string(key) + ": is ")) << key;
    // Switched off it says nothing.
    config[key] = nullptr;
    EXPECT_EQ(problems_of(config_text(config)), "") << key;
  }
  Json config = fixture("llama-3.1-8b");
  config["brand_new_scalar"] = 3;
  EXPECT_EQ(problems_of(config_text(config)), "");
}

TEST(ShrinkHostile, ListsOfWrongLength) {
  Json v4 = fixture("deepseek-v4-flash-0731");
  v4["compress_ratios"] = {0, 4};
  EXPECT_THAT(problems_of(config_text(v4)), HasSubstr("compress_ratios: has 2 entries"));
  v4["compress_ratios"] = "0,4";
  EXPECT_THAT(problems_of(config_text(v4)), HasSubstr("compress_ratios: is '\"0,4\"'"));
  v4.erase("compress_ratios");
  EXPECT_THAT(problems_of(config_text(v4)), HasSubstr("compress_ratios: has 0 entries"));
  Json oss = fixture("gpt-oss-20b");
  oss["layer_types"].push_back("full_attention");
  EXPECT_THAT(problems_of(config_text(oss)), HasSubstr("layer_types: has 25 entries"));
  Json nemotron = fixture("nemotron-3-nano-30b-a3b");
  nemotron["hybrid_override_pattern"] = "ME*";
  EXPECT_THAT(problems_of(config_text(nemotron)),
              HasSubstr("hybrid_override_pattern: has 3 letters"));
  nemotron["num_hidden_layers"] = 3;
  nemotron["hybrid_override_pattern"] = "MX*";
  EXPECT_THAT(problems_of(config_text(nemotron)), HasSubstr("hybrid_override_pattern[1]"));
}

TEST(ShrinkHostile, ValuesOutOfRange) {
  const std::vector<std::pair<const char*, Json>> wrong = {
      {"num_hidden_layers", 0},
      {"num_hidden_layers", -3},
      {"num_hidden_layers", 1e6},
      {"num_hidden_layers", "43"},
      {"num_hidden_layers", 43.5},
      {"num_hidden_layers", 18446744073709551615u},
      {"hidden_size", 9007199254740993},
      {"n_routed_experts", 1 << 20},
      {"num_experts_per_tok", 257},
      {"num_experts_per_tok", 0},
      {"vocab_size", 0},
      {"num_hash_layers", -1},
      {"o_groups", 7},
      {"n_shared_experts", Json({1})},
      {"quantization_config", Json({1})},
      {"torch_dtype", "int3"},
      {"expert_dtype", "fp3"},
      {"hc_mult", 1000000}};
  for (const auto& [key, value] : wrong) {
    Json config = fixture("deepseek-v4-flash");
    config[key] = value;
    EXPECT_THAT(problems_of(config_text(config)), HasSubstr(key)) << key << " " << value;
  }
  for (const char* key : {"num_hidden_layers", "hidden_size", "n_routed_experts", "vocab_size",
                          "head_dim", "q_lora_rank", "index_topk", "moe_intermediate_size"}) {
    Json config = fixture("deepseek-v4-flash");
    config.erase(key);
    EXPECT_THAT(problems_of(config_text(config)), HasSubstr(std::string(key) + ": ")) << key;
  }
}

// Whether or not the sums need the key: the engine reads it.
TEST(ShrinkHostile, ValuesOfAnotherType) {
  const Json nan = "\x01NaN", infinity = "\x01Infinity";  // as a parsed config holds them
  struct Wrong {
    const char *model, *key;
    Json value;
    const char* right;
  };
  const std::vector<Wrong> wrong = {
      {"deepseek-v4-flash", "num_hash_layers", 999, "whole number from 0 to 43"},
      {"deepseek-v4-flash", "n_routed_experts", 0, "whole number from 1"},
      {"deepseek-v3", "n_routed_experts", 0, "whole number from 1"},
      {"qwen3-30b-a3b", "num_experts", 0, "whole number from 1"},
      {"gpt-oss-20b", "num_local_experts", 0, "whole number from 1"},
      {"nemotron-3-nano-30b-a3b", "n_routed_experts", 0, "whole number from 1"},
      {"llama-3.1-8b", "architectures", "x", "list of texts"},
      {"llama-3.1-8b", "architectures", Json({"x", 7}), "list of texts"},
      {"llama-3.1-8b", "architectures", Json::array(), "list of texts"},
      {"llama-3.1-8b", "rope_scaling", Json({1, 2}), "an object"},
      {"llama-3.1-8b", "rope_scaling", Json({{"factor", -8}}), "number from 0"},
      {"llama-3.1-8b", "rope_scaling", Json({{"factor", nan}}), "number from 0"},
      {"llama-3.1-8b", "rope_theta", nan, "number from 0"},
      {"llama-3.1-8b", "rope_theta", infinity, "number from 0"},
      {"llama-3.1-8b", "rope_theta", true, "number from 0"},
      {"llama-3.1-8b", "rms_norm_eps", "1e-5", "number from 0"},
      {"llama-3.1-8b", "hidden_size", true, "whole number"},
      {"llama-3.1-8b", "hidden_size", infinity, "whole number"},
      {"llama-3.1-8b", "vocab_size", -1, "whole number"},
      {"llama-3.1-8b", "some_other_size", -1, "whole number from 0"},
      {"llama-3.1-8b", "some_other_size", true, "whole number from 0"},
      {"llama-3.1-8b", "num_of_something", 1.5, "whole number from 0"},
      {"llama-3.1-8b", "anything", nan, "a number"},
      {"llama-3.1-8b", "tie_word_embeddings", 1, "true or false"},
      {"llama-3.1-8b", "hidden_act", 5, "a text"},
      {"llama-3.1-8b", "torch_dtype", nan, "a text"}};
  for (const auto& [model, key, value, right] : wrong) {
    Json config = fixture(model);
    config[key] = value;
    const std::string text = problems_of(config_text(config));
    EXPECT_THAT(text, HasSubstr(std::string("config.json: ") + key)) << model << value;
    EXPECT_THAT(text, HasSubstr(right)) << model << key << value;
    EXPECT_EQ(text.find('\x01'), text.npos);
  }
  Json config = fixture("deepseek-v3");
  config["quantization_config"]["weight_block_size"] = {128, -1};
  EXPECT_THAT(problems_of(config_text(config)), HasSubstr("weight_block_size: is "));
  for (const std::string& name : fixture_names())
    EXPECT_EQ(problems_of(fixture_text(name)), "") << name;
}

TEST(ShrinkHostile, Taps) {
  for (const Json& taps : {Json({40, 43}), Json({41, 40}), Json({40, 40}), Json({-1}), Json({"a"}),
                           Json(7), Json({1.5})}) {
    Json config = fixture("deepseek-v4-flash-0731");
    config["dspark_target_layer_ids"] = taps;
    EXPECT_THAT(problems_of(config_text(config)), HasSubstr("dspark_target_layer_ids")) << taps;
  }
}

TEST(ShrinkHostile, ListsThatContradictPeriods) {
  Json next = fixture("qwen3-next-80b-a3b");
  next["layer_types"] = Json::array();
  for (int i = 0; i < 48; ++i) next["layer_types"].push_back("linear_attention");
  EXPECT_THAT(problems_of(config_text(next)), HasSubstr("layer_types: says other than"));
}

TEST(ShrinkHostile, WhatPythonWrites) {
  Json config = fixture("llama-3.1-8b");
  std::string text = config_text(config);
  text.insert(text.rfind('}'), R"(, "time_step_limit": [0.0, Infinity], "x": -Infinity,
      "note": "Infinity and NaN \" stay" )");
  const Result r = shrink_text(text, "config.json", {});
  EXPECT_THAT(r.files.at("config.json"), HasSubstr("\"time_step_limit\": [0.0, Infinity]"));
  EXPECT_THAT(r.files.at("config.json"), HasSubstr("\"x\": -Infinity"));
  EXPECT_THAT(r.files.at("config.json"), HasSubstr("Infinity and NaN \\\" stay"));
}

TEST(ShrinkHostile, EveryTruncationAndByteIsRefusedOrTaken) {
  const std::string text = fixture_text("deepseek-v4-flash-0731");
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 7)
    EXPECT_NE(problems_of(text.substr(0, cut)), "");
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    std::string broken = text;
    for (int j = 0; j < 3; ++j) broken[random() % broken.size()] = static_cast<char>(random());
    problems_of(broken);  // refused or taken, never anything else
  }
}

TEST(ShrinkHostile, FilesThatAreNone) {
  const auto problem = [](const std::filesystem::path& path) -> std::string {
    Request request;
    request.config = path;
    try {
      shrink(request);
    } catch (const scenario::ScenarioError& error) {
      return error.problems().front().text();
    }
    return "";
  };
  EXPECT_THAT(problem("/nonexistent/config.json"), HasSubstr("cannot be read"));
  EXPECT_THAT(problem("/dev/zero"), HasSubstr("no regular file"));
  EXPECT_THAT(problem("/tmp"), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace warmgate::plan::shrink
