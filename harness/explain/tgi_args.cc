#include "harness/explain/tgi_args.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace warmgate::explain {
namespace {

bool matters_to_tgi(std::string_view key) {
  static constexpr std::array<std::string_view, 17> kKeys = {"model_id",
                                                             "revision",
                                                             "num_shard",
                                                             "sharded",
                                                             "quantize",
                                                             "speculate",
                                                             "dtype",
                                                             "kv_cache_dtype",
                                                             "max_total_tokens",
                                                             "max_input_length",
                                                             "max_input_tokens",
                                                             "max_batch_prefill_tokens",
                                                             "max_batch_size",
                                                             "max_batch_total_tokens",
                                                             "trust_remote_code",
                                                             "disable_custom_kernels",
                                                             "rope_factor"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t,") + 1 - from);
}

// `BitsandbytesNf4` is an enumerator; its argument is bitsandbytes-nf4.
std::string argument_of(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    return std::string(value.substr(1, value.size() - 2));
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto c = static_cast<unsigned char>(value[i]);
    if (std::isupper(c) != 0 && i > 0 &&
        std::islower(static_cast<unsigned char>(value[i - 1])) != 0)
      out += '-';
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> tgi_args(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  std::string open;  // its value stands in the next line
  const auto take = [&](const std::string& key, std::string_view value, bool optional) {
    if (!matters_to_tgi(key) || value.empty() || value == "None") return;
    // A flag has no value; what is optional has one.
    if (!optional && (value == "true" || value == "false"))
      out.emplace_back(key, value == "true" ? "True" : "False");
    else
      out.emplace_back(key, argument_of(value));
  };
  const auto part = [&](std::string_view line) {
    line = trimmed(line);
    const std::size_t colon = line.rfind(": ");
    if (colon == std::string_view::npos) {
      if (!open.empty()) take(open, line.substr(line.rfind(' ') + 1), true);
      return open.clear();
    }
    const std::string_view before = line.substr(0, colon);
    const std::string key(before.substr(before.rfind(' ') + 1));
    std::string_view value = trimmed(line.substr(colon + 2));
    open.clear();
    if (value == "Some(") {
      open = key;
      return;
    }
    const bool optional = value.starts_with("Some(") && value.ends_with(")");
    if (optional) value = value.substr(5, value.size() - 6);
    take(key, value, optional);
  };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t args = line.find("Args {");
    if (args == std::string_view::npos) {
      part(line);
      continue;
    }
    // The older launcher's: all in one line.
    line.remove_prefix(args + 6);
    if (const std::size_t close = line.rfind('}'); close != std::string_view::npos)
      line = line.substr(0, close);
    while (!line.empty()) {
      const std::size_t comma = line.find(", ");
      part(line.substr(0, comma));
      line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 2);
    }
  }
  return out;
}

}  // namespace warmgate::explain
