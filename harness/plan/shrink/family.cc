#include "harness/plan/shrink/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/plan/shrink/family_parts.h"
#include "harness/plan/shrink/value_types.h"
#include "harness/scenario/problems.h"

namespace warmgate::plan::shrink {
namespace {

constexpr std::array<Family, 16> kFamilies = {{
    {"deepseek_v4", read_deepseek_v4, weigh_deepseek_v4},
    {"deepseek_v3", read_deepseek, weigh_deepseek},
    {"deepseek_v32", read_deepseek, weigh_deepseek},
    {"deepseek_v2", read_deepseek, weigh_deepseek},
    {"kimi_k2", read_deepseek, weigh_deepseek},
    {"glm4_moe", read_glm4_moe, weigh_glm4_moe},
    {"qwen3_moe", read_qwen_moe, weigh_qwen_moe},
    {"qwen2_moe", read_qwen_moe, weigh_qwen_moe},
    {"mixtral", read_mixtral, weigh_mixtral},
    {"gpt_oss", read_gpt_oss, weigh_mixtral},
    {"llama", read_decoder, weigh_decoder},
    {"mistral", read_decoder, weigh_decoder},
    {"qwen2", read_decoder, weigh_decoder},
    {"qwen3", read_decoder, weigh_decoder},
    {"gemma3_text", read_decoder, weigh_decoder},
    {"qwen3_next", read_qwen3_next, weigh_qwen3_next},
}};
constexpr std::array<Family, 2> kHybrids = {{
    {"nemotron_h", read_nemotron_h, weigh_nemotron_h},
    {"jamba", read_jamba, weigh_jamba},
}};

// Where the ids of the layers that feed a drafter may stand.
constexpr std::array<const char*, 4> kTapKeys = {"dspark_target_layer_ids",
                                                 "eagle_aux_hidden_state_layer_ids",
                                                 "aux_hidden_state_layer_ids", "target_layer_ids"};

// Lists, maps and words with "layer" in them that say nothing about single layers.
constexpr std::array<const char*, 20> kHarmless = {"architectures",
                                                   "auto_map",
                                                   "bos_token_id",
                                                   "eos_token_id",
                                                   "pad_token_id",
                                                   "rope_scaling",
                                                   "rope_parameters",
                                                   "id2label",
                                                   "label2id",
                                                   "time_step_limit",
                                                   "layer_norm_eps",
                                                   "layer_norm_epsilon",
                                                   "layernorm_epsilon",
                                                   "task_specific_params",
                                                   "quantization_config",
                                                   "moe_router_enable_expert_bias",
                                                   "n_shared_experts",
                                                   "shared_expert_intermediate_size",
                                                   "moe_shared_expert_intermediate_size",
                                                   "expert_dtype"};
// A number under a key with one of these may count or name layers.
constexpr std::array<std::string_view, 17> kTelling = {
    "layer", "expert", "pattern", "mtp",     "nextn", "draft", "period", "interval", "block_type",
    "eagle", "dspark", "dflash",  "_source", "stage", "depth", "offset", "predict"};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool may_tell(const std::string& key, const Json& value) {
  if (value.is_null() || value == Json(false)) return false;  // switched off
  if (value.is_structured()) return !value.empty();
  const std::string name = lower(key);
  return std::any_of(kTelling.begin(), kTelling.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

void complain_of_unknown(Reader& reader) {
  for (const char* key : kHarmless) reader.know(key);
  for (const auto& [key, value] : reader.config().items()) {
    if (reader.knows(key) || !may_tell(key, value)) continue;
    reader.complain(key, fmt::format("is {}, and not known for this model_type: it may speak of "
                                     "layers, and nothing is guessed",
                                     shown_value(value)));
  }
}

void read_taps(Reader& reader, Structure& s) {
  for (const char* key : kTapKeys) {
    if (!reader.has(key)) {
      reader.know(key);
      continue;
    }
    const auto ids = reader.numbers(key, 0, std::max<std::int64_t>(0, s.layers() - 1));
    if (!s.taps_key.empty()) reader.complain(key, "stands beside " + s.taps_key);
    s.taps_key = key;
    s.taps = ids;
    if (!std::is_sorted(ids.begin(), ids.end(), std::less_equal<>()))
      reader.complain(key, "expected ascending ids, each once");
  }
  if (s.taps.empty()) s.taps_key.clear();
}

}  // namespace

const Family* family_of(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  for (const Family& family : kHybrids) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::vector<std::string> family_names() {
  std::vector<std::string> out;
  for (const Family& family : kFamilies) out.emplace_back(family.model_type);
  for (const Family& family : kHybrids) out.emplace_back(family.model_type);
  return out;
}

Structure read_structure(const Json& config, Complaints& complaints) {
  Reader reader(config, complaints);
  Structure out;
  out.model_type = reader.word("model_type", "");
  const Family* family = family_of(out.model_type);
  if (!family && complaints.empty()) {
    const auto names = family_names();
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    complaints.add("model_type",
                   (out.model_type.empty() ? std::string("is missing")
                                           : "is " + scenario::shown(out.model_type)) +
                       "; known are " + known + scenario::did_you_mean(out.model_type, names));
  }
  if (!family) return out;
  family->read(reader, out);
  if (out.target.empty()) {
    check_value_types(reader, complaints);
    return out;
  }
  read_taps(reader, out);
  // Reads every width, so that complaints come together and known keys are known.
  WeightList weights(precision_of(reader), {});
  family->weigh(reader, out, weights);
  reader.maybe("max_position_embeddings", 1, std::int64_t{1} << 40);
  check_value_types(reader, complaints);
  complain_of_unknown(reader);
  return out;
}

WeightList weigh(const Json& config, const Structure& structure, Parallel parallel,
                 Complaints& complaints) {
  Reader reader(config, complaints);
  WeightList weights(precision_of(reader), parallel);
  if (const Family* family = family_of(structure.model_type))
    family->weigh(reader, structure, weights);
  return weights;
}

std::vector<std::string> weight_notes(const Json& config) {
  Complaints ignored("");
  Reader reader(config, ignored);
  return precision_of(reader).notes;
}

void check_parallel(const Json& config, const Structure& structure, Parallel parallel,
                    Complaints& complaints) {
  Reader reader(config, complaints);
  const auto divides = [&](const char* key, std::int64_t ranks, const char* option) {
    const auto value = reader.maybe(key, 0, kMostWidth);
    if (value && *value % ranks != 0)
      complaints.add(key,
                     fmt::format("{} does not divide by --{} {}; the model itself cannot start "
                                 "like that",
                                 *value, option, ranks));
  };
  for (const char* key :
       {"num_attention_heads", "o_groups", "index_n_heads", "linear_num_key_heads",
        "linear_num_value_heads", "mamba_num_heads", "intermediate_size"})
    divides(key, parallel.tp, "tp");
  // Fewer KV heads than ranks are copied.
  const auto kv = reader.maybe("num_key_value_heads", 1, kMostWidth);
  if (kv && *kv % parallel.tp != 0 && parallel.tp % *kv != 0)
    complaints.add("num_key_value_heads",
                   fmt::format("{} and --tp {} do not divide each other", *kv, parallel.tp));
  if (structure.experts.count == 0) {
    if (parallel.ep > 1) complaints.add("", "has no experts for --ep");
    return;
  }
  if (parallel.ep > 1) {
    divides(structure.experts.key.c_str(), parallel.ep, "ep");
  } else {
    divides("moe_intermediate_size", parallel.tp, "tp");
  }
}

}  // namespace warmgate::plan::shrink
