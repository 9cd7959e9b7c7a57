#include "harness/scenario/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/bounds.h"

namespace warmgate::scenario {
namespace {

class Rules {
 public:
  Rules(const Resolved& resolved, const NodePtr& tree, const Tainted& tainted, const Report& report)
      : r_(resolved), tree_(tree), tainted_(tainted), report_(report) {}

  void all() {
    if (clean({"model"})) model();
    if (clean({"model", "parallel"})) sharding();
    const WrongAt at_value = [this](const auto& keys, const auto& what) { wrong(keys, what); };
    if (clean({"model"})) check_rope_rows(r_.model, at_value);
    if (clean({"workload"})) check_requests(r_.workload, at_value);
    if (clean({"limits"})) memory();
    if (clean({"model", "drafter", "limits"}) && r_.limits.device_memory_bytes > 0)
      check_blocks(r_, at_value);
    if (clean({"model", "limits"})) lengths();
    if (clean({"workload"})) short_workload();
    if (clean({"workload", "limits"})) workload();
    if (clean({"model", "drafter"}) && r_.drafter.active()) drafter();
  }

 private:
  bool clean(std::initializer_list<const char*> sections) const {
    for (const char* section : sections) {
      if (tainted_.count(section) > 0) return false;
    }
    return true;
  }

  // A problem at the value that `keys` leads to, or as near to it as the file goes.
  void wrong(const std::vector<std::string>& keys, const std::string& message) {
    const Node& node = nearest_node(tree_, keys);
    std::string path = keys.front();
    for (std::size_t i = 1; i < keys.size(); ++i) path += "." + keys[i];
    // The path as the file has it says more (variants.A.…), if it is the very value.
    const NodePtr exact = at(tree_, keys);
    if (exact && !exact->path.empty() && exact->place.line > 0) path = exact->path;
    report_(node.place, path, message);
  }
  void missing(const char* section, const char* key, std::int64_t value, std::string_view hint) {
    if (value > 0) return;
    wrong({section, key}, fmt::format("missing; {}", hint));
  }

  void model() {
    const Model& m = r_.model;
    constexpr std::string_view kHint = "name a model.preset, or give the key";
    missing("model", "hidden_size", m.hidden_size, kHint);
    missing("model", "num_attention_heads", m.num_attention_heads, kHint);
    missing("model", "q_lora_rank", m.q_lora_rank, kHint);
    missing("model", "o_groups", m.o_groups, kHint);
    missing("model", "o_lora_rank", m.o_lora_rank, kHint);
    missing("model", "num_hidden_layers", m.num_hidden_layers,
            "name a model.preset, or give model.layers, or the key with compress_ratios");
    const auto ratios = static_cast<std::int64_t>(m.compress_ratios.size());
    if (m.num_hidden_layers > kMaxLayers) {
      wrong({"model", "num_hidden_layers"}, fmt::format("more than {} layers", kMaxLayers));
    } else if (m.num_hidden_layers > 0 && ratios < m.num_hidden_layers) {
      wrong({"model", "compress_ratios"},
            fmt::format("{} entries for {} layers; one per target layer is needed", ratios,
                        m.num_hidden_layers));
    }
    if (m.qk_rope_head_dim > m.head_dim || m.qk_rope_head_dim % 2 != 0) {
      wrong({"model", "qk_rope_head_dim"},
            fmt::format("{} must be even and at most head_dim {}", m.qk_rope_head_dim, m.head_dim));
    }
    // Where contents are computed, the layout of a cache row fixes what may only be counted
    // elsewhere.
    if (r_.device == "cpu" && (m.head_dim != 512 || m.qk_rope_head_dim != 64))
      wrong({"model", m.head_dim != 512 ? "head_dim" : "qk_rope_head_dim"},
            "device cpu stores rows of 448 e4m3 and 64 bf16 values: head_dim 512, qk_rope_head_dim "
            "64");
    if (r_.device == "cpu" && m.index_head_dim != 128)
      wrong({"model", "index_head_dim"}, "device cpu stores indexer rows of 128 values");
    if (m.num_experts_per_tok > m.n_routed_experts) {
      wrong({"model", "num_experts_per_tok"},
            fmt::format("{} of {} experts", m.num_experts_per_tok, m.n_routed_experts));
    }
    if (m.n_routed_experts > 0 && m.num_experts_per_tok == 0) {
      wrong({"model", "num_experts_per_tok"}, "missing; there are routed experts");
    }
    if (m.n_routed_experts + m.n_shared_experts > 0 && m.moe_intermediate_size == 0) {
      wrong({"model", "moe_intermediate_size"}, "missing; there are experts");
    }
    if (m.num_hash_layers > m.num_hidden_layers && m.num_hidden_layers > 0) {
      wrong({"model", "num_hash_layers"},
            fmt::format("{} of {} layers", m.num_hash_layers, m.num_hidden_layers));
    }
  }

  void sharding() {
    const Model& m = r_.model;
    const std::int64_t tp = r_.parallel.tp;
    if (m.o_groups == 0 || m.num_attention_heads == 0) return;  // reported as missing
    const std::vector<std::string> place = {"parallel", "tp"};
    if (tp > m.o_groups) {
      wrong(place, fmt::format("tp {} is above o_groups {}; a rank would have no output group", tp,
                               m.o_groups));
      return;
    }
    if (m.o_groups % tp != 0) {
      wrong(place, fmt::format("tp {} does not divide o_groups {}", tp, m.o_groups));
    }
    if (m.num_attention_heads % tp != 0) {
      wrong(place,
            fmt::format("tp {} does not divide {} attention heads", tp, m.num_attention_heads));
    } else if (m.num_attention_heads / tp > kMaxHeadsPerRank) {
      wrong({"model", "num_attention_heads"},
            fmt::format("{} heads on each of {} ranks; the decode kernel takes at most {}",
                        m.num_attention_heads / tp, tp, kMaxHeadsPerRank));
    }
    if (m.num_attention_heads % m.o_groups != 0) {
      wrong({"model", "o_groups"}, fmt::format("{} does not divide {} attention heads", m.o_groups,
                                               m.num_attention_heads));
    }
  }

  void memory() {
    const Limits& l = r_.limits;
    if (l.device_memory_bytes == 0) {
      wrong({"limits", "device_memory_bytes"}, "missing; memory of one device, such as 80 GiB");
    } else if (l.kv_pool_bytes && *l.kv_pool_bytes > l.device_memory_bytes) {
      wrong({"limits", "kv_pool_bytes"}, fmt::format("{} is over the device's memory of {} bytes",
                                                     *l.kv_pool_bytes, l.device_memory_bytes));
    }
  }

  void lengths() {
    if (r_.limits.max_model_len > r_.model.max_position_embeddings) {
      wrong({"limits", "max_model_len"},
            fmt::format("{} is over the model's max_position_embeddings {}",
                        r_.limits.max_model_len, r_.model.max_position_embeddings));
    }
  }

  // The short form may be spread over layers, so that its parts can only be missed here.
  void short_workload() {
    const NodePtr node = at(tree_, {"workload"});
    if (!node || node->find("groups")) return;
    const std::vector<std::string> keys = {"requests", "prompt_tokens", "output_tokens"};
    const bool used = std::any_of(keys.begin(), keys.end(),
                                  [&](const std::string& key) { return node->find(key); });
    for (const std::string& key : keys) {
      if (used && !node->find(key)) {
        wrong({"workload", key}, "missing; a workload is requests, prompt_tokens, output_tokens");
      }
    }
  }

  void workload() {
    const NodePtr groups = at(tree_, {"workload", "groups"});
    for (std::size_t i = 0; i < r_.workload.groups.size(); ++i) {
      const RequestGroup& group = r_.workload.groups[i];
      if (group.prompt_tokens + group.output_tokens <= r_.limits.max_model_len) continue;
      const std::string message =
          fmt::format("prompt_tokens {} and output_tokens {} are together over max_model_len {}",
                      group.prompt_tokens, group.output_tokens, r_.limits.max_model_len);
      const Node& node = groups && i < groups->items.size()
                             ? *groups->items[i]
                             : nearest_node(tree_, {"workload", "prompt_tokens"});
      report_(node.place, node.path, message);
    }
  }

  void drafter() {
    const Drafter& d = r_.drafter;
    const std::string hint =
        fmt::format("no preset gives it for method {}, so the scenario must", d.method);
    missing("drafter", "num_speculative_tokens", d.num_speculative_tokens,
            "there is no default number of drafts");
    missing("drafter", "block_size", d.block_size, hint);
    missing("drafter", "layers", d.layers, hint);
    if (d.num_speculative_tokens > 0 && d.num_speculative_tokens < d.block_size) {
      wrong({"drafter", "num_speculative_tokens"},
            fmt::format("{} is below the drafter's block_size {}", d.num_speculative_tokens,
                        d.block_size));
    }
    for (const std::int64_t tap : d.target_layer_ids) {
      if (tap < r_.model.num_hidden_layers) continue;
      wrong({"drafter", "target_layer_ids"},
            fmt::format("layer {} of {}, counted from 0", tap, r_.model.num_hidden_layers));
    }
    if (d.noise_token_id >= r_.model.vocab_size) {
      wrong({"drafter", "noise_token_id"},
            fmt::format("{} of {} tokens", d.noise_token_id, r_.model.vocab_size));
    }
    if (clean({"limits"}) && r_.limits.max_num_batched_tokens < 1 + d.num_speculative_tokens) {
      wrong({"limits", "max_num_batched_tokens"},
            fmt::format("{} is too small to verify {} drafts and a token in one step",
                        r_.limits.max_num_batched_tokens, d.num_speculative_tokens));
    }
  }

  const Resolved& r_;
  const NodePtr& tree_;
  const Tainted& tainted_;
  const Report& report_;
};

}  // namespace

void validate(const Resolved& resolved, const NodePtr& tree, const Tainted& tainted,
              const Report& report) {
  Rules(resolved, tree, tainted, report).all();
}

}  // namespace warmgate::scenario
