// The presets' own data against what the servers write: each stream below is as the engine of that
// preset sends it (ggml-org/llama.cpp tools/server/README.md, sgl-project/sglang docs
// "sampling_params", huggingface/text-generation-inference docs "streaming", the OpenAI API).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "harness/target/server/preset.h"
#include "harness/target/server/stream.h"
#include "harness/target/server/workload.h"
#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

const std::map<std::string, std::string>& streams() {
  static const std::string openai =
      R"(data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":" b","logprobs":null,"finish_reason":"length"}]}

data: {"id":"c","choices":[],"usage":{"prompt_tokens":8,"total_tokens":10,"completion_tokens":2}}

data: [DONE]

)";
  static const std::map<std::string, std::string> all = {
      {"vllm", openai},
      {"trtllm", openai},
      {"lmdeploy", openai},
      {"openai", openai},
      {"llama-node", openai},
      {"standin", openai},
      {"llamacpp",
       R"(data: {"index":0,"content":" a","tokens":[263],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":8}

data: {"index":0,"content":" b","tokens":[289],"stop":false,"id_slot":-1,"tokens_predicted":2,"tokens_evaluated":8}

data: {"index":0,"content":"","tokens":[],"id_slot":0,"stop":true,"model":"m","tokens_predicted":2,"tokens_evaluated":8,"truncated":false,"stop_type":"limit","timings":{"prompt_n":8,"predicted_n":2,"draft_n":4,"draft_n_accepted":1}}

)"},
      {"sglang",
       R"(data: {"text":" a","output_ids":[1],"meta_info":{"id":"r","finish_reason":null,"prompt_tokens":8,"completion_tokens":1,"cached_tokens":0}}

data: {"text":" a b","output_ids":[1,2],"meta_info":{"id":"r","finish_reason":{"type":"length","length":2},"prompt_tokens":8,"completion_tokens":2,"cached_tokens":0}}

data: [DONE]

)"},
      {"tgi",
       R"(data:{"index":1,"token":{"id":1,"text":" a","logprob":-1.5,"special":false},"generated_text":null,"details":null}

data:{"index":2,"token":{"id":2,"text":" b","logprob":-1.5,"special":false},"generated_text":" a b","details":{"finish_reason":"length","generated_tokens":2,"seed":null,"input_length":8}}

)"}};
  return all;
}

class Shapes : public ::testing::TestWithParam<std::string> {
 protected:
  ServerPreset preset() const {
    return find_preset(GetParam(), presets_folder(testing::source("fixtures")));
  }
};

TEST_P(Shapes, TheStreamIsReadAsItsServerMeansIt) {
  const ServerPreset p = preset();
  const auto it = streams().find(GetParam());
  ASSERT_NE(it, streams().end()) << "a preset whose stream nobody wrote down here";
  AnswerReader reader(p.completion, "greedy");
  std::int64_t t = 0;
  for (const char c : it->second) reader.feed({&c, 1}, t += 1000);
  const StreamResult r = reader.finish(t);
  EXPECT_EQ(r.text, " a b");
  EXPECT_EQ(r.tokens, 2);
  EXPECT_EQ(r.tokens_from, "usage");
  EXPECT_EQ(r.prompt_tokens, 8);
  EXPECT_EQ(r.chunks, 2);
  EXPECT_GT(r.first_ns, 0);
  EXPECT_EQ(r.gaps_ms.size(), 1u);
  EXPECT_TRUE(r.done);
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.bad_payloads, 0u);
  for (const auto& [figure, pointers] : p.completion.figures)
    EXPECT_EQ(r.figures.count(figure), 1u) << figure;
}

TEST_P(Shapes, BodiesOfEveryClassAreFilledIn) {
  const ServerPreset p = preset();
  WorkloadSpec spec;
  spec.completion = p.completion;
  spec.model = "the model";
  spec.adapter = "the adapter";
  spec.grammar = "the grammar";
  spec.groups = {{1, 8, 4, "none of them"}};
  for (const auto& [name, patch] : p.completion.classes) spec.groups.push_back({1, 8, 4, name});
  for (std::int64_t i = 1; i <= request_count(spec); ++i) {
    const std::string body = request_body(spec, i).dump();
    // What is left of a placeholder: "{word}".
    for (std::size_t at = 0; (at = body.find("\"{", at)) != std::string::npos; ++at)
      EXPECT_FALSE(std::islower(static_cast<unsigned char>(body[at + 2]))) << body;
    EXPECT_NE(body.find(":4"), std::string::npos) << "as many tokens as asked for: " << body;
  }
  for (const auto& [name, pointers] : p.completion.shows)
    EXPECT_EQ(p.completion.classes.count(name), 1u) << name;
}

std::vector<std::string> all_presets() {
  return preset_names(presets_folder(testing::source("fixtures")));
}

INSTANTIATE_TEST_SUITE_P(Presets, Shapes, ::testing::ValuesIn(all_presets()),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace warmgate::target
