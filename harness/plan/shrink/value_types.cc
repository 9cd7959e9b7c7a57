#include "harness/plan/shrink/value_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace warmgate::plan::shrink {
namespace {

enum class Type { kAny, kSize, kRate, kText, kFlag, kObject, kTexts };

struct Rule {
  std::string_view name;  // "_size": names that end so; "num_": that begin so; else the whole name
  Type type;
};

// Names as transformers' configurations have them (configuration_*.py).
constexpr auto kRules = std::to_array<Rule>({
    {"use_", Type::kAny},  // use_sliding_window is no window
    {"mscale_all_dim", Type::kRate},
    {"architectures", Type::kTexts},
    {"rope_scaling", Type::kObject},
    {"rope_parameters", Type::kObject},
    {"auto_map", Type::kObject},
    {"id2label", Type::kObject},
    {"label2id", Type::kObject},
    {"task_specific_params", Type::kObject},
    {"model_type", Type::kText},
    {"hidden_act", Type::kText},
    {"torch_dtype", Type::kText},
    {"dtype", Type::kText},
    {"transformers_version", Type::kText},
    {"rope_type", Type::kText},
    {"tie_word_embeddings", Type::kFlag},
    {"attention_bias", Type::kFlag},
    {"mlp_bias", Type::kFlag},
    {"norm_topk_prob", Type::kFlag},
    {"max_position_embeddings", Type::kSize},
    {"original_max_position_embeddings", Type::kSize},
    {"initializer_range", Type::kRate},
    {"factor", Type::kRate},
    {"num_", Type::kSize},
    {"_size", Type::kSize},
    {"_dim", Type::kSize},
    {"_heads", Type::kSize},
    {"_layers", Type::kSize},
    {"_experts", Type::kSize},
    {"_groups", Type::kSize},
    {"_topk", Type::kSize},
    {"_window", Type::kSize},
    {"_eps", Type::kRate},
    {"_epsilon", Type::kRate},
    {"_theta", Type::kRate},
    {"_factor", Type::kRate},
    {"_dropout", Type::kRate},
});

Type type_of(std::string_view key) {
  for (const Rule& rule : kRules) {
    if (rule.name.front() == '_'  ? key.ends_with(rule.name)
        : rule.name.back() == '_' ? key.starts_with(rule.name)
                                  : key == rule.name)
      return rule.type;
  }
  return Type::kAny;
}

// "" or what would be right.
std::string_view expected(Type type, const Json& value) {
  switch (type) {
    case Type::kAny:
      return "";
    case Type::kSize:
      // Lists of layers and of widths a layer are the families' affair.
      if (value.is_array()) return "";
      return value.is_number_unsigned() ||
                     (value.is_number_integer() && value.get<std::int64_t>() >= 0)
                 ? ""
                 : "a whole number from 0";
    case Type::kRate:
      return value.is_number() && value.get<double>() >= 0 ? "" : "a finite number from 0";
    case Type::kText:
      return value.is_string() && !is_python_word(value) ? "" : "a text";
    case Type::kFlag:
      return value.is_boolean() ? "" : "true or false";
    case Type::kObject:
      return value.is_object() ? "" : "an object";
    case Type::kTexts:
      return value.is_array() && !value.empty() &&
                     std::all_of(value.begin(), value.end(),
                                 [](const Json& item) { return item.is_string(); })
                 ? ""
                 : "a list of texts";
  }
  return "";
}

void check(Reader& reader, const Complaints& complaints, const std::string& path,
           const std::string& key, const Json& value) {
  if (value.is_null() || complaints.about(path)) return;
  std::string_view wish = expected(type_of(key), value);
  if (wish.empty() && is_python_word(value) && shown_value(value).find("NaN") != std::string::npos)
    wish = "a number";
  if (!wish.empty()) {
    reader.complain(path, fmt::format("is {}; expected {}", shown_value(value), wish));
    return;
  }
  // The one object whose inside every engine reads.
  if (key != "rope_scaling" && key != "rope_parameters") return;
  for (const auto& [name, item] : value.items())
    check(reader, complaints, path + "." + name, name, item);
}

}  // namespace

void check_value_types(Reader& reader, const Complaints& complaints) {
  for (const auto& [key, value] : reader.config().items())
    check(reader, complaints, key, key, value);
}

}  // namespace warmgate::plan::shrink
