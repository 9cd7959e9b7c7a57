#include "harness/explain/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/explain/python_literal.h"

namespace warmgate::explain {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Launch found(const std::string& text, const std::string& engine = "") {
  LaunchFinder finder;
  finder.feed(text);
  return finder.take(engine);
}

TEST(ShellWords, AsAShellSplits) {
  EXPECT_THAT(shell_words("a  'b c' \"d\\\"e\" f\\ g ''"),
              ElementsAre("a", "b c", "d\"e", "f g", ""));
  EXPECT_THAT(shell_words("a b | tee log"), ElementsAre("a", "b"));
  EXPECT_THAT(shell_words("a b > log"), ElementsAre("a", "b"));
  EXPECT_THAT(shell_words("a b # c"), ElementsAre("a", "b"));
  EXPECT_THAT(shell_words("a 'b"), IsEmpty());
  EXPECT_THAT(shell_words(""), IsEmpty());
}

TEST(PythonDict, Literals) {
  EXPECT_THAT(
      python_dict("{'a': 'x', 'b': 2, 'c': True, 'd': None, 'e': [1, 'y'], 'f': {'g': 0.5}}"),
      ElementsAre(Pair("a", "x"), Pair("b", "2"), Pair("c", "True"), Pair("d", "None"),
                  Pair("e", "[1,\"y\"]"), Pair("f", "{\"g\":0.5}")));
  EXPECT_THAT(python_dict("(a='it\\'s', b=torch.bfloat16)"),
              ElementsAre(Pair("a", "it's"), Pair("b", "bfloat16")));
}

TEST(PythonDict, WhatIsNoLiteralIsSkippedOver) {
  EXPECT_THAT(python_dict("{'a': <object at 0x7f>, 'b': Config(x='1, 2', y=[3]), 'c': 4}"),
              ElementsAre(Pair("a", std::string(kPythonObject)),
                          Pair("b", std::string(kPythonObject)), Pair("c", "4")));
}

TEST(PythonDict, HostileText) {
  for (const char* text : {"", "{", "{'a'", "{'a':", "{'a': ", "{'a': '", "{a}", "(((((", "{'a': [",
                           "{'a': {'b': ", "{'': 1}"})
    (void)python_dict(text);
  EXPECT_THAT(python_dict("{'a': " + std::string(100000, '[')),
              ElementsAre(Pair("a", std::string(kPythonObject))));
  EXPECT_LE(python_dict([] {
              std::string text = "{";
              for (int i = 0; i < 5000; ++i) text += "'k" + std::to_string(i) + "': 1, ";
              return text + "}";
            }())
                .size(),
            1000u);
}

TEST(LaunchFinder, TheCommandLineItself) {
  const Launch launch = found(
      "+ vllm serve example/dense-14b --tensor-parallel-size 2 --port 8000 --host=0.0.0.0 "
      "--api-key s3cret --hf-overrides '{\"num_hidden_layers\": 2}' --enforce-eager 2>&1 | tee "
      "log\n");
  EXPECT_EQ(launch.engine, "vllm");
  EXPECT_EQ(launch.model, "example/dense-14b");
  EXPECT_THAT(launch.program, ElementsAre("vllm", "serve"));
  EXPECT_THAT(launch.args, ElementsAre("--tensor-parallel-size", "2", "--hf-overrides",
                                       "{\"num_hidden_layers\": 2}", "--enforce-eager"));
  EXPECT_THAT(launch.left_out, ElementsAre("--api-key"));
}

TEST(LaunchFinder, OtherServers) {
  EXPECT_EQ(found("python3 -m sglang.launch_server --model-path m --tp 2\n").model, "m");
  EXPECT_EQ(found("$ llama-server -m /models/x.gguf -c 4096 --port 80\n").model, "/models/x.gguf");
  EXPECT_THAT(found("$ llama-server -m /models/x.gguf -c 4096 --port 80\n").args,
              ElementsAre("-c", "4096"));
  EXPECT_EQ(found("trtllm-serve example/m --tp_size 2 --port 8000\n").model, "example/m");
  EXPECT_EQ(found("text-generation-launcher --model-id m --num-shard 2\n").model, "m");
}

TEST(LaunchFinder, WhatAnEnginePrintsOfItself) {
  const Launch vllm = found(
      "(APIServer pid=11) INFO 07-02 09:00:01 [api_utils.py:273] non-default args: {'model_tag': "
      "'example/dense-14b', 'tensor_parallel_size': 2, 'max_model_len': 40960, 'port': 8001, "
      "'enable_prefix_caching': False, 'api_key': ['x'], 'config': <object>}\n");
  EXPECT_EQ(vllm.model, "example/dense-14b");
  EXPECT_THAT(vllm.args, ElementsAre("--tensor-parallel-size", "2", "--max-model-len", "40960",
                                     "--no-enable-prefix-caching"));
  EXPECT_THAT(vllm.left_out, ElementsAre("api_key", "config"));
  const Launch sglang = found(
      "[2025-11-30 13:00:00] server_args=ServerArgs(model_path='example/dense-8b', tp_size=2, "
      "dp_size=1, mem_fraction_static=0.85, port=30000, log_level='info', "
      "disable_cuda_graph=False, enable_dp_attention=True)\n");
  EXPECT_EQ(sglang.model, "example/dense-8b");
  EXPECT_THAT(sglang.args, ElementsAre("--tp-size", "2", "--mem-fraction-static", "0.85",
                                       "--enable-dp-attention"));
  EXPECT_EQ(found("srv    load_model: loading model '/m/x y.gguf'\n").model, "/m/x y.gguf");
  EXPECT_EQ(found("    model_id: \"example/dense-70b\",\n").model, "example/dense-70b");
}

TEST(LaunchFinder, TgiPrintsItsArgumentsAsAStruct) {
  const std::string block =
      "INFO text_generation_launcher: Args {\n    model_id: \"example/dense-70b\",\n"
      "    revision: None,\n    validation_workers: 2,\n    sharded: Some(\n        true,\n    ),\n"
      "    num_shard: Some(\n        2,\n    ),\n    quantize: Some(\n        BitsandbytesNf4,\n"
      "    ),\n    dtype: None,\n    trust_remote_code: true,\n    disable_custom_kernels: false,\n"
      "    hostname: \"0.0.0.0\",\n    port: 80,\n    max_total_tokens: Some(\n        4096,\n    "
      "),\n"
      "    api_key: None,\n}\n";
  const auto args =
      ElementsAre("--sharded", "true", "--num-shard", "2", "--quantize", "bitsandbytes-nf4",
                  "--trust-remote-code", "--max-total-tokens", "4096");
  EXPECT_EQ(found(block).model, "example/dense-70b");
  EXPECT_THAT(found(block).args, args);
  // As Docker stores it, cut off before its end, and as the older launcher writes it.
  std::string stored = block;
  for (std::size_t at = 0; at < stored.size(); at = stored.find('\n', at) + 1)
    stored.insert(at, "2026-07-08T22:40:03.166647879Z ");
  EXPECT_THAT(found(stored).args, args);
  EXPECT_EQ(found(block.substr(0, block.find("    quantize"))).args.back(), "2");
  EXPECT_THAT(found("x  INFO text_generation_launcher: Args { model_id: \"m\", revision: None, "
                    "sharded: None, num_shard: Some(4), quantize: Some(Awq), port: 80 }\n")
                  .args,
              ElementsAre("--num-shard", "4", "--quantize", "awq"));
}

TEST(LaunchFinder, TheFlagsOfTensorParallelismArrive) {
  for (const auto& [line, flag] : std::vector<std::pair<std::string, std::string>>{
           {"vllm serve m --tensor-parallel-size 2", "--tensor-parallel-size"},
           {"vllm serve m -tp 2", "-tp"},
           {"python3 -m sglang.launch_server --model-path m --tp 2", "--tp"},
           {"python3 -m sglang.launch_server --model-path m --tp-size 2", "--tp-size"},
           {"llama-server -m m.gguf -ts 2", "-ts"},
           {"trtllm-serve m --backend pytorch --tp_size 2", "--tp_size"},
           {"lmdeploy serve api_server m --tp 2", "--tp"},
           {"text-generation-launcher --model-id m --num-shard 2", "--num-shard"}}) {
    const std::vector<std::string> args = found(line + "\n").args;
    const auto at = std::find(args.begin(), args.end(), flag);
    ASSERT_NE(at, args.end()) << line;
    EXPECT_EQ(*(at + 1), "2") << line;
  }
}

TEST(LaunchFinder, ACommandLineIsWorthMoreThanWhatIsPrinted) {
  const std::string both =
      "non-default args: {'model': 'm', 'tensor_parallel_size': 2}\nvllm serve m --seed 7\n";
  EXPECT_THAT(found(both).args, ElementsAre("--seed", "7"));
  // Of another engine than the log is of, it is somebody's who only stands beside it.
  EXPECT_EQ(found("llama-server -m x.gguf -c 1\nnon-default args: {'model': 'm'}\n", "vllm").model,
            "m");
}

TEST(LaunchFinder, SentencesAreNoCommands) {
  EXPECT_FALSE(found("Use `vllm serve` instead of the api_server module.\n").found());
  EXPECT_FALSE(found("vllm serve is deprecated since then\n").found());
  EXPECT_FALSE(found("").found());
}

TEST(LaunchFinder, CutAnywhere) {
  const std::string text = "x\nnon-default args: {'model': 'm', 'max_model_len': 4096}\ny\n";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    LaunchFinder finder;
    finder.feed(std::string_view(text).substr(0, cut));
    finder.feed(std::string_view(text).substr(cut));
    EXPECT_EQ(finder.take("").model, "m") << cut;
  }
}

TEST(LaunchFinder, LinesWithoutEndAreBounded) {
  LaunchFinder finder;
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 16; ++i) finder.feed(piece);
  finder.feed("\nvllm serve m --seed 7\n");
  EXPECT_FALSE(finder.take("").found());  // behind kMost
}

}  // namespace
}  // namespace warmgate::explain
