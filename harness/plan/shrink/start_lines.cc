#include "harness/plan/shrink/start_lines.h"

#include <fmt/format.h>

namespace warmgate::plan::shrink {
namespace {

std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "_-./=:,+@%") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

void add(std::vector<std::string>& argv, std::initializer_list<std::string> words) {
  argv.insert(argv.end(), words);
}

const std::map<std::string, std::string> kOffline = {{"HF_HUB_OFFLINE", "1"},
                                                     {"TRANSFORMERS_OFFLINE", "1"}};

// vllm-project/vllm: engine/arg_utils.py, config/speculative.py.
StartLine vllm(const Structure& s, const StartWish& wish) {
  StartLine out;
  out.preset = "vllm";
  out.command = {"vllm", "serve", wish.folder};
  out.weightless = {"--load-format", "dummy"};
  out.env = kOffline;
  out.env["VLLM_NO_USAGE_STATS"] = "1";
  // A plan left by an earlier start lets the next one skip the profile run.
  out.env["VLLM_ENABLE_STARTUP_PLAN"] = "0";
  if (!wish.tokenizer) out.args.push_back("--skip-tokenizer-init");
  // As public recipes start it: its attention stores fp8, in pages of 256 tokens.
  if (s.model_type == "deepseek_v4")
    add(out.args, {"--kv-cache-dtype", "fp8", "--block-size", "256"});
  if (wish.parallel.tp > 1)
    add(out.args, {"--tensor-parallel-size", std::to_string(wish.parallel.tp)});
  if (wish.parallel.ep > 1 && wish.parallel.ep % wish.parallel.tp == 0) {
    out.args.push_back("--enable-expert-parallel");
    if (wish.parallel.ep > wish.parallel.tp)
      add(out.args, {"--data-parallel-size", std::to_string(wish.parallel.ep / wish.parallel.tp)});
  } else if (wish.parallel.ep > 1) {
    out.note = "its expert parallelism is tp x dp, so --ep cannot be less than --tp";
  }
  if (wish.block > 0) {
    add(out.args,
        {"--speculative-config",
         fmt::format(R"({{"method": "dspark", "num_speculative_tokens": {}}})", wish.block)});
  } else if (!s.draft.empty()) {
    add(out.args, {"--speculative-config", R"({"method": "mtp", "num_speculative_tokens": 1})"});
  }
  return out;
}

// sgl-project/sglang: srt/server_args.py.
StartLine sglang(const Structure& s, const StartWish& wish) {
  StartLine out;
  out.preset = "sglang";
  out.command = {"python3", "-m", "sglang.launch_server", "--model-path", wish.folder};
  out.weightless = {"--load-format", "dummy"};
  out.env = kOffline;
  if (!wish.tokenizer) out.args.push_back("--skip-tokenizer-init");
  if (wish.parallel.tp > 1) add(out.args, {"--tp-size", std::to_string(wish.parallel.tp)});
  if (wish.parallel.ep > 1) add(out.args, {"--ep-size", std::to_string(wish.parallel.ep)});
  if (wish.block > 0) {
    add(out.args, {"--speculative-algorithm", "DSPARK"});
  } else if (!s.draft.empty()) {
    add(out.args, {"--speculative-algorithm", "EAGLE", "--speculative-num-steps", "1",
                   "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "2"});
  }
  return out;
}

// NVIDIA/TensorRT-LLM: llmapi/llm_args.py, LoadFormat.
StartLine trtllm(const StartWish& wish) {
  StartLine out;
  out.preset = "trtllm";
  out.command = {"trtllm-serve", wish.folder, "--backend", "pytorch"};
  out.weightless = {"--extra_llm_api_options", wish.folder + "/trtllm.yml"};
  out.files["trtllm.yml"] = "load_format: dummy\n";
  out.env = kOffline;
  if (wish.parallel.tp > 1) add(out.args, {"--tp_size", std::to_string(wish.parallel.tp)});
  if (wish.parallel.ep > 1) add(out.args, {"--ep_size", std::to_string(wish.parallel.ep)});
  if (!wish.tokenizer) out.note = "it wants a tokenizer: shrink with --tokenizer stub";
  return out;
}

StartLine not_applicable(const char* preset, const char* why) {
  StartLine out;
  out.preset = preset;
  out.note = std::string("not applicable: ") + why;
  return out;
}

}  // namespace

std::vector<std::string> StartLine::argv() const {
  std::vector<std::string> out = command;
  out.insert(out.end(), weightless.begin(), weightless.end());
  out.insert(out.end(), args.begin(), args.end());
  return out;
}

std::vector<StartLine> start_lines(const Structure& s, const StartWish& wish) {
  return {
      vllm(s, wish),
      sglang(s, wish),
      trtllm(wish),
      not_applicable("lmdeploy",
                     "--empty-init of its PyTorch engine makes the structure but no KV cache and "
                     "no warmup (LMDEPLOY_RANDOM_LOAD_WEIGHT only shuffles the order of files)"),
      not_applicable("llamacpp", "it reads one GGUF file with the weights in it"),
      not_applicable("tgi", "it has no dummy loading, the shards want weight files")};
}

std::string shell_text(const StartLine& line) {
  std::string out;
  for (const auto& [name, value] : line.env) out += name + "=" + quoted(value) + " ";
  for (const std::string& word : line.argv()) out += quoted(word) + " ";
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace warmgate::plan::shrink
