#include "kernels/jit/kernel_table.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "kernels/jit/sources.h"

namespace warmgate::jit {

const std::vector<KernelSpec>& kernels() {
  using enum FieldKind;
  static const std::vector<KernelSpec> table = {
      {kComputePrefillMetadata,
       "kernels/jit/bodies/compute_prefill_metadata.cuh",
       sources::compute_prefill_metadata,
       {{"BLOCK_SIZE"}}},
      {kBuildPrefillChunkMetadata,
       "kernels/jit/bodies/build_prefill_chunk_metadata.cuh",
       sources::build_prefill_chunk_metadata,
       {{"query_slice_start", kClass},
        {"query_slice_stop", kClass},
        {"DCP_RANK"},
        {"DCP_WORLD"},
        {"DCP_INTERLEAVE"},
        {"BLOCK_SIZE"},
        {"COMPRESS_RATIO"},
        {"alignment", kAlignment, 1}}},
      {kCombineTopkSwaIndices,
       "kernels/jit/bodies/combine_topk_swa_indices.cuh",
       sources::combine_topk_swa_indices,
       {{"COMPRESS_RATIO"},
        {"TOP_K"},
        {"PADDED_TOP_K"},
        {"WINDOW_SIZE"},
        {"alignment", kAlignment, 4}}},
  };
  return table;
}

const KernelSpec* find_kernel(std::string_view name) {
  const auto& all = kernels();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const KernelSpec& k) { return k.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::string_view device_prelude() { return sources::device_prelude; }

namespace {

[[noreturn]] void refuse(const Key& key, const std::string& why) {
  throw std::runtime_error("key " + key.text() + ": " + why);
}

/// Writes the field's template arguments to `out` and returns one past the last.
std::int32_t* convert(const Key& key, const FieldSpec& field, const std::string& value,
                      std::int32_t* out) {
  const std::string name(field.name);
  switch (field.kind) {
    case FieldKind::kConstant: {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
      if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
        refuse(key, name + " is '" + value + "', not a decimal 32-bit integer");
      }
      return out + 1;
    }
    case FieldKind::kClass:
      if (value != "one" && value != "div16" && value != "any") {
        refuse(key, name + " is '" + value + "'; allowed are one, div16, any");
      }
      *out = value == "one" ? 1 : value == "div16" ? 16 : 0;
      return out + 1;
    case FieldKind::kAlignment:
      if (static_cast<int>(value.size()) != field.width ||
          value.find_first_not_of("TF") != std::string::npos) {
        refuse(key, name + " is '" + value + "', not " + std::to_string(field.width) +
                        " letters T or F");
      }
      for (const char letter : value) *out++ = letter == 'T' ? 1 : 0;
      return out;
  }
  return out;
}

}  // namespace

Constants constants_of(const Key& key, std::string_view kernel) {
  const KernelSpec* spec = find_kernel(kernel);
  if (spec == nullptr || key.kernel != kernel)
    refuse(key, "not a key of kernel " + std::string(kernel));
  if (key.fields.size() != spec->fields.size()) {
    refuse(key, "has " + std::to_string(key.fields.size()) + " fields, the kernel has " +
                    std::to_string(spec->fields.size()));
  }
  Constants constants{};
  std::int32_t* next = constants.data();
  for (std::size_t i = 0; i < key.fields.size(); ++i) {
    const auto& [name, value] = key.fields[i];
    if (name != spec->fields[i].name) {
      refuse(key, "field " + std::to_string(i + 1) + " is '" + name + "', expected '" +
                      std::string(spec->fields[i].name) + "'");
    }
    next = convert(key, spec->fields[i], value, next);
  }
  return constants;
}

std::string name_expression(const Key& key) {
  const KernelSpec* spec = find_kernel(key.kernel);
  if (spec == nullptr) refuse(key, "no such kernel");
  const Constants constants = constants_of(key, key.kernel);
  std::string text = key.kernel + "<";
  const std::int32_t* next = constants.data();
  for (const FieldSpec& field : spec->fields) {
    const bool is_flag = field.kind == FieldKind::kAlignment;
    for (int i = 0; i < (is_flag ? field.width : 1); ++i, ++next) {
      if (text.back() != '<') text += ',';
      text += is_flag ? (*next != 0 ? "true" : "false") : std::to_string(*next);
    }
  }
  return text + ">";
}

std::string source_line(std::string_view file, int line) {
  for (const KernelSpec& spec : kernels()) {
    if (spec.file != file || line < 1) continue;
    std::string_view rest = spec.source;
    for (int i = 1; i < line; ++i) {
      const auto end = rest.find('\n');
      if (end == std::string_view::npos) return "";
      rest.remove_prefix(end + 1);
    }
    rest = rest.substr(0, rest.find('\n'));
    const auto begin = rest.find_first_not_of(' ');
    return begin == std::string_view::npos ? "" : std::string(rest.substr(begin));
  }
  return "";
}

}  // namespace warmgate::jit
