#include "harness/plan/shrink/family_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/problems.h"

namespace warmgate::plan::shrink {

Attention attention_of(Reader& reader) {
  Attention out;
  out.hidden = reader.whole("hidden_size");
  out.heads = reader.whole("num_attention_heads");
  out.kv_heads = reader.maybe("num_key_value_heads").value_or(out.heads);
  const auto stated = reader.maybe("head_dim");
  if (!stated && out.hidden % out.heads != 0)
    reader.complain("num_attention_heads",
                    fmt::format("{} does not divide hidden_size {}, and there "
                                "is no head_dim",
                                out.heads, out.hidden));
  if (out.heads % out.kv_heads != 0)
    reader.complain("num_key_value_heads", fmt::format("{} does not divide num_attention_heads {}",
                                                       out.kv_heads, out.heads));
  out.head_dim = stated.value_or(std::max<std::int64_t>(1, out.hidden / out.heads));
  return out;
}

std::int64_t layer_count(Reader& reader) {
  return reader.whole("num_hidden_layers", 1, kMostLayers);
}

std::vector<std::string> layer_words(Reader& reader, Structure& structure, const std::string& key,
                                     std::int64_t layers, const std::vector<std::string>& known) {
  if (!reader.has(key)) {
    reader.know(key);
    return {};
  }
  std::vector<std::string> out = reader.words(key);
  structure.lists.push_back(key);
  if (static_cast<std::int64_t>(out.size()) != layers) {
    reader.complain(key,
                    fmt::format("has {} entries; num_hidden_layers is {}", out.size(), layers));
    return std::vector<std::string>(static_cast<std::size_t>(layers), known.front());
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::find(known.begin(), known.end(), out[i]) == known.end())
      reader.complain(
          fmt::format("{}[{}]", key, i),
          fmt::format("is {}; known are {}", scenario::shown(out[i]), scenario::list_of(known)));
  }
  return out;
}

std::vector<std::string> windowed_mixers(Reader& reader, Structure& structure,
                                         std::int64_t layers) {
  const auto window = reader.maybe("sliding_window", 0, kMostWidth);
  const bool used = reader.flag("use_sliding_window", structure.model_type.rfind("qwen", 0) != 0);
  const std::size_t count = static_cast<std::size_t>(layers);
  const auto listed = layer_words(reader, structure, "layer_types", layers,
                                  {"full_attention", "sliding_attention", "chunked_attention"});
  std::vector<std::string> out(count, "full_attention");
  // Gemma 3: every n-th layer is global (transformers, configuration_gemma3).
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (!reader.has(key)) {
      reader.know(key);
      continue;
    }
    const std::int64_t every = period(reader, structure, key, 1);
    for (std::size_t i = 0; i < count; ++i) {
      if ((static_cast<std::int64_t>(i) + 1) % every != 0) out[i] = "sliding_attention";
    }
  }
  const bool patterned = reader.has("sliding_window_pattern");
  // Qwen 2 and 3: layers from max_window_layers on (transformers, configuration_qwen2).
  const std::int64_t from =
      boundary(reader, structure, "max_window_layers",
               structure.model_type.rfind("qwen", 0) == 0 ? 28 : 0,  // its default there
               kMostLayers);  // more than there are: no layer has a window
  if (used && window && *window > 0 && !patterned && !reader.has("_sliding_window_pattern")) {
    for (std::size_t i = 0; i < count; ++i) {
      if (static_cast<std::int64_t>(i) >= from) out[i] = "sliding_attention";
    }
  }
  if (listed.empty()) return out;
  if (patterned && listed != out)
    reader.complain("layer_types", "says other than sliding_window_pattern");
  return listed;
}

Experts experts_of(Reader& reader, const std::string& count_key, const std::string& top_k_key) {
  Experts out;
  const std::int64_t count = reader.whole(count_key, 1, kMostExperts);
  const auto top_k = reader.maybe(top_k_key, 0, kMostExperts);
  out.key = count_key;
  out.top_k_key = top_k_key;
  out.count = count;
  out.top_k = top_k.value_or(0);
  if (out.top_k < 1 || out.top_k > count) {
    reader.complain(top_k_key, fmt::format("expected 1 to {} ({})", count, count_key));
    out.top_k = 1;
  }
  return out;
}

std::int64_t boundary(Reader& reader, Structure& structure, const std::string& key,
                      std::int64_t otherwise, std::int64_t most) {
  const auto value = reader.maybe(key, 0, most);
  if (value) structure.boundaries.push_back(key);
  return value.value_or(otherwise);
}

std::vector<std::int64_t> layer_ids(Reader& reader, Structure& structure, const std::string& key,
                                    std::int64_t layers) {
  if (reader.has(key)) structure.id_lists.push_back(key);
  return reader.numbers(key, 0, layers - 1);
}

std::int64_t period(Reader& reader, Structure& structure, const std::string& key,
                    std::int64_t otherwise) {
  const std::int64_t value = reader.maybe(key, 1, kMostLayers).value_or(otherwise);
  if (value > 1) structure.periods.push_back(key);
  return value;
}

void set_layers(Structure& structure, const std::vector<std::string>& mixers,
                const std::vector<std::string>& ffns) {
  structure.target.clear();
  for (std::size_t i = 0; i < mixers.size(); ++i)
    structure.target.push_back({mixers[i], ffns.at(i)});
}

std::int64_t count_mixer(const Structure& structure, std::string_view name) {
  const auto is = [&](const Kind& kind) { return kind.mixer == name; };
  return std::count_if(structure.target.begin(), structure.target.end(), is) +
         std::count_if(structure.draft.begin(), structure.draft.end(), is);
}

std::int64_t count_ffn(const Structure& structure, std::string_view name) {
  const auto is = [&](const Kind& kind) { return kind.ffn == name; };
  return std::count_if(structure.target.begin(), structure.target.end(), is) +
         std::count_if(structure.draft.begin(), structure.draft.end(), is);
}

void weigh_embeddings(Reader& reader, WeightList& weights) {
  const std::int64_t hidden = reader.whole("hidden_size");
  const std::int64_t vocabulary = reader.whole("vocab_size", 1, kMostVocabulary);
  const bool tied = reader.flag("tie_word_embeddings", false);
  weights.add(tied ? "embeddings (tied)" : "embeddings and lm_head", 1,
              {tied ? 1 : 2, vocabulary, hidden}, Stored::kPlain, weights.tp());
}

void weigh_attention(Reader& reader, std::int64_t layers, WeightList& weights,
                     std::int64_t query_parts) {
  const Attention a = attention_of(reader);
  weights.add("attention q, o", layers, {query_parts + 1, a.heads * a.head_dim, a.hidden},
              Stored::kDense, weights.tp());
  weights.add("attention k, v", layers, {2, a.kv_heads * a.head_dim, a.hidden}, Stored::kDense,
              std::min(weights.tp(), a.kv_heads));
}

void weigh_mlp(Reader& reader, std::int64_t layers, WeightList& weights, std::int64_t matrices) {
  if (layers == 0) {
    reader.maybe("intermediate_size");
    return;
  }
  weights.add(matrices == 3 ? "mlp gate, up, down" : "mlp up, down", layers,
              {matrices, reader.whole("hidden_size"), reader.whole("intermediate_size")},
              Stored::kDense, weights.tp());
}

void weigh_experts(Reader& reader, const Structure& structure, std::int64_t layers,
                   std::int64_t width, std::int64_t shared_width, WeightList& weights,
                   std::int64_t matrices) {
  const std::int64_t hidden = reader.whole("hidden_size");
  const std::int64_t experts = structure.experts.count;
  weights.add("router", layers, {experts, hidden}, Stored::kPlain, 1);
  weights.add(matrices == 3 ? "experts gate, up, down" : "experts up, down", layers,
              {experts, matrices, hidden, width}, Stored::kExpert, weights.expert_shards());
  weights.add("shared experts", layers, {matrices, hidden, shared_width}, Stored::kDense,
              weights.tp());
}

}  // namespace warmgate::plan::shrink
