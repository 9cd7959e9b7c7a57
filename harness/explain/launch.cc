#include "harness/explain/launch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "harness/explain/python_literal.h"
#include "harness/explain/tgi_args.h"

namespace warmgate::explain {
namespace {

constexpr std::size_t kMostLine = 64 * 1024;
constexpr std::size_t kMostArgs = 200;

struct Program {
  std::string_view words;  // in the log
  const char* engine;
  std::string_view model_option;  // "" = the first word that is no option
};

// In the order in which they are tried on a line: the longer first where one contains another.
constexpr std::array<Program, 10> kPrograms = {{
    {"vllm serve ", "vllm", ""},
    {"vllm.entrypoints.openai.api_server", "vllm", "--model"},
    {"sglang.launch_server", "sglang", "--model-path"},
    {"sglang serve", "sglang", "--model-path"},
    {"llama-server ", "llamacpp", "-m"},
    {"trtllm-serve ", "trtllm", ""},
    {"lmdeploy serve api_server ", "lmdeploy", ""},
    {"text-generation-launcher ", "tgi", "--model-id"},
    {"trtllm-llmapi-launch trtllm-serve ", "trtllm", ""},
    {"vllm-openai serve ", "vllm", ""},
}};

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

bool is_place(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kPlaces = {
      "--port", "--host",        "-p",          "--hostname", "port",
      "host",   "--server-port", "server_port", "--uds",      "--server-name",
      "uds",    "server_name",   "fd",          "hostname"};
  return std::find(kPlaces.begin(), kPlaces.end(), name) != kPlaces.end();
}

bool may_be_secret(std::string_view name) {
  for (const std::string_view word : {"key", "token", "secret", "password", "auth", "credential"}) {
    const std::size_t at = name.find(word);
    if (at == std::string_view::npos) continue;
    // max_num_batched_tokens, tokenizer, max_total_tokens count tokens and hold none.
    if (word == "token" && at + 5 < name.size() && (name[at + 5] == 's' || name[at + 5] == 'i'))
      continue;
    return true;
  }
  return false;
}

std::string option_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

// Words after the program → the launch; the model is taken out.
void split_arguments(const std::vector<std::string>& words, std::string_view model_option,
                     Launch& out) {
  for (std::size_t i = 0; i < words.size() && out.args.size() < kMostArgs; ++i) {
    std::string name = words[i], value;
    const std::size_t equals = is_option(name) ? name.find('=') : std::string::npos;
    bool has_value = equals != std::string::npos;
    if (has_value) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (is_option(name) && i + 1 < words.size() && !is_option(words[i + 1])) {
      value = words[i + 1];
      has_value = true;
    }
    const bool apart = has_value && equals == std::string::npos;
    const bool model = model_option.empty()
                           ? !is_option(name) && out.model.empty()
                           : name == model_option || (model_option == "-m" && name == "--model") ||
                                 (model_option == "--model-path" && name == "--model");
    if (model) {
      out.model = model_option.empty() ? name : value;
      i += !model_option.empty() && apart ? 1 : 0;
      continue;
    }
    if (is_place(name)) {
      i += apart ? 1 : 0;
      continue;
    }
    if (is_option(name) && may_be_secret(name)) {
      out.left_out.push_back(name);
      i += apart ? 1 : 0;
      continue;
    }
    out.args.push_back(words[i]);
    // A value of an option is never the model of `serve MODEL`.
    if (apart) {
      out.args.push_back(value);
      ++i;
    }
  }
}

std::optional<Launch> command_line(std::string_view text) {
  for (const Program& program : kPrograms) {
    const std::size_t at = text.find(program.words);
    if (at == std::string_view::npos) continue;
    std::string_view rest = text.substr(at + program.words.size());
    // "vllm serve" in a sentence is no command.
    const std::vector<std::string> words = shell_words(rest);
    const bool options = std::any_of(words.begin(), words.end(), is_option);
    if (words.empty() || (!options && words.size() > 1)) continue;
    Launch out;
    out.engine = program.engine;
    out.from = "the command line in the log";
    for (const std::string& word : shell_words(program.words)) out.program.push_back(word);
    if (program.words.find(".entrypoints") != std::string_view::npos ||
        program.words == "sglang.launch_server")
      out.program = {"python3", "-m", std::string(program.words)};
    split_arguments(words, program.model_option, out);
    if (out.model.empty()) continue;
    return out;
  }
  return std::nullopt;
}

void add_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, bool keep_false,
               Launch& out) {
  for (const auto& [key, value] : pairs) {
    if (key == "model" || key == "model_tag" || key == "model_path" || key == "model_id") {
      out.model = value;
    } else if (is_place(key) || value == "None" || key == "served_model_name" ||
               out.args.size() >= kMostArgs) {
      continue;
    } else if (value == kPythonObject || may_be_secret(key)) {
      out.left_out.push_back(key);
    } else if (value == "True") {
      out.args.push_back(option_of(key));
    } else if (value == "False") {
      if (keep_false) out.args.push_back(option_of("no_" + key));
    } else if (value.empty()) {
      continue;
    } else {
      out.args.push_back(option_of(key));
      out.args.push_back(value);
    }
  }
}

// SGLang prints every argument, set or not; these are the ones that change what a start does.
bool matters_to_sglang(const std::string& key) {
  static constexpr std::array<std::string_view, 28> kKeys = {"model_path",
                                                             "tp_size",
                                                             "dp_size",
                                                             "ep_size",
                                                             "pp_size",
                                                             "nnodes",
                                                             "dtype",
                                                             "quantization",
                                                             "kv_cache_dtype",
                                                             "context_length",
                                                             "mem_fraction_static",
                                                             "max_running_requests",
                                                             "max_total_tokens",
                                                             "chunked_prefill_size",
                                                             "max_prefill_tokens",
                                                             "page_size",
                                                             "attention_backend",
                                                             "sampling_backend",
                                                             "load_format",
                                                             "trust_remote_code",
                                                             "enable_dp_attention",
                                                             "speculative_algorithm",
                                                             "speculative_draft_model_path",
                                                             "speculative_num_steps",
                                                             "speculative_eagle_topk",
                                                             "speculative_num_draft_tokens",
                                                             "disable_cuda_graph",
                                                             "cuda_graph_max_bs"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

std::optional<Launch> printed_arguments(std::string_view text) {
  Launch out;
  std::size_t at = text.find("non-default args: {");
  if (at != std::string_view::npos) {
    out.engine = "vllm";
    out.from = "the non-default args in the log";
    add_pairs(python_dict(text.substr(at + 18)), true, out);
    if (!out.model.empty() || !out.args.empty()) return out;
  }
  at = text.find("server_args=ServerArgs(");
  if (at != std::string_view::npos) {
    out.engine = "sglang";
    out.from = "the server_args in the log";
    auto pairs = python_dict(text.substr(at + 22));
    std::erase_if(pairs, [](const auto& pair) { return !matters_to_sglang(pair.first); });
    // One GPU each is the default, and so is what is -1 or auto.
    std::erase_if(pairs, [](const auto& pair) {
      return pair.second == "auto" || pair.second == "-1" ||
             (pair.second == "1" && pair.first.ends_with("_size")) ||
             (pair.second == "1" && pair.first == "nnodes");
    });
    add_pairs(pairs, false, out);
    if (!out.model.empty()) return out;
  }
  at = text.find("LLM engine (v");
  const std::size_t config = at == std::string_view::npos ? at : text.find("with config: ", at);
  if (config != std::string_view::npos) {
    out.engine = "vllm";
    out.from = "the engine's config in the log";
    for (const auto& [key, value] : python_dict(text.substr(config + 12))) {
      if (key == "model") out.model = value;
      if ((key == "tensor_parallel_size" || key == "pipeline_parallel_size") && value != "1") {
        out.args.push_back(option_of(key));
        out.args.push_back(value);
      }
      if (key == "max_seq_len") {
        out.args.push_back("--max-model-len");
        out.args.push_back(value);
      }
      if (key == "enforce_eager" && value == "True") out.args.push_back("--enforce-eager");
    }
    if (!out.model.empty()) return out;
  }
  at = text.find("loading model '");
  if (at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + 15);
    out.engine = "llamacpp";
    out.from = "the model's file in the log";
    out.model = std::string(rest.substr(0, rest.find('\'')));
    if (!out.model.empty()) return out;
  }
  at = text.find("model_id: \"");
  if (at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + 11);
    out.engine = "tgi";
    out.from = "the launcher's Args in the log";
    out.model = std::string(rest.substr(0, rest.find('"')));
    if (!out.model.empty()) return out;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool open = false;  // a word has begun, perhaps an empty one
  char quote = 0;
  for (std::size_t i = 0; i < text.size() && out.size() < kMostArgs; ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote == '"' && i + 1 < text.size() &&
                 (text[i + 1] == '"' || text[i + 1] == '\\')) {
        word += text[++i];
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == '\\') {
      if (i + 1 >= text.size()) break;  // goes on in the next line, which is not ours to join
      word += text[++i];
      open = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (open) out.push_back(std::move(word));
      word.clear();
      open = false;
    } else if (c == '|' || c == ';' || c == '&' || c == '>' || (c == '#' && !open)) {
      // The 2 of 2> is no word.
      if (c == '>' && word.find_first_not_of("0123456789") == std::string::npos) open = false;
      break;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) return {};
  if (open) out.push_back(std::move(word));
  return out;
}

void LaunchFinder::feed(std::string_view bytes) {
  if (seen_ >= kMost) return;
  bytes = bytes.substr(0, kMost - seen_);
  seen_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (end == std::string_view::npos || !rest_.empty())
      rest_.append(piece.substr(0, kMostLine - std::min(kMostLine, rest_.size())));
    if (end == std::string_view::npos) break;
    line(rest_.empty() ? piece : std::string_view(rest_));
    rest_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LaunchFinder::offer(Launch launch, int rank) {
  const auto better = std::find_if(found_.begin(), found_.end(), [&](const Found& other) {
    return other.launch.engine == launch.engine && other.rank <= rank;
  });
  if (better == found_.end()) found_.push_back({std::move(launch), rank});
}

void LaunchFinder::close_block() {
  if (block_.empty()) return;
  Launch launch;
  launch.engine = "tgi";
  launch.from = "the launcher's Args in the log";
  add_pairs(tgi_args(std::exchange(block_, {})), false, launch);
  if (!launch.model.empty()) offer(std::move(launch), 1);
}

bool LaunchFinder::block_line(std::string_view text) {
  constexpr int kMostBlockLines = 400;
  constexpr std::size_t kMostBlock = 64 * 1024;
  if (block_.empty()) {
    if (text.find("text_generation_launcher: Args {") == std::string_view::npos) return false;
    block_lines_ = 0;
  }
  block_.append(text.substr(0, 4096)).append("\n");
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  if (text.ends_with('}') || ++block_lines_ > kMostBlockLines || block_.size() > kMostBlock)
    close_block();
  return true;
}

void LaunchFinder::line(std::string_view text) {
  if (found_.size() <= 16 && block_line(text)) return;
  if (text.size() < 12 || found_.size() > 16) return;
  text = text.substr(0, kMostLine);
  // A command line is worth more than what an engine says of it: it can be started as it stands.
  if (auto launch = command_line(text)) offer(std::move(*launch), 0);
  if (auto launch = printed_arguments(text))
    offer(std::move(*launch), launch->from.find("config") == std::string::npos ? 1 : 2);
}

void LaunchFinder::adopt(LaunchFinder&& other) {
  if (!other.rest_.empty()) other.line(std::exchange(other.rest_, {}));
  other.close_block();
  for (Found& found : other.found_) offer(std::move(found.launch), found.rank);
}

Launch LaunchFinder::take(const std::string& engine) {
  if (!rest_.empty()) line(std::exchange(rest_, {}));
  close_block();
  const Found* best = nullptr;
  for (const Found& found : found_) {
    if (!engine.empty() && found.launch.engine != engine) continue;
    if (!best || found.rank < best->rank) best = &found;
  }
  return best ? best->launch : Launch{};
}

}  // namespace warmgate::explain
