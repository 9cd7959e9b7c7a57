#include "harness/plan/shrink/weights.h"

#include <fmt/format.h>

#include "harness/scenario/problems.h"

namespace warmgate::plan::shrink {
namespace {

// OCP microscaling formats: one byte of scale for 32 elements of half a byte.
constexpr double kMxFp4Bytes = 0.5 + 1.0 / 32;

double scale_bytes(Reader& reader, const Json& quantization) {
  const auto it = quantization.find("weight_block_size");
  if (it == quantization.end() || it->is_null()) return 0;
  double area = it->is_array() && it->size() == 2 ? 1 : 0;
  for (const Json& side : *it) {
    const bool whole = side.is_number_integer() && side.get<std::int64_t>() >= 1;
    area *= whole ? static_cast<double>(side.get<std::int64_t>()) : 0;
  }
  if (area == 0)
    reader.complain("quantization_config.weight_block_size",
                    fmt::format("is {}; expected two whole numbers from 1", shown_value(*it)));
  return area > 0 ? 4 / area : 0;  // one float32 a block
}

}  // namespace

Precision precision_of(Reader& reader) {
  Precision out;
  const std::string dtype = reader.word("torch_dtype", reader.word("dtype", ""));
  if (dtype == "float32") {
    out.plain = 4;
  } else if (dtype.empty()) {
    out.notes.push_back("no torch_dtype: 2 bytes an element are assumed");
  } else if (dtype != "bfloat16" && dtype != "float16") {
    reader.complain("torch_dtype",
                    "is " + scenario::shown(dtype) + "; bfloat16, float16 and float32 are known");
  }
  out.dense = out.expert = out.plain;
  reader.know("quantization_config");
  if (reader.has("quantization_config")) {
    const Json& quantization = reader.config().at("quantization_config");
    std::string method;
    if (!quantization.is_object()) {
      reader.complain("quantization_config", "is no object");
    } else if (const auto it = quantization.find("quant_method");
               it != quantization.end() && it->is_string()) {
      method = it->get<std::string>();
    }
    if (method == "fp8") {
      out.dense = out.expert = 1 + scale_bytes(reader, quantization);
    } else if (method == "mxfp4") {
      out.expert = kMxFp4Bytes;  // attention and router stay as they are
    } else {
      out.notes.push_back(fmt::format(
          "quant_method {}: counted as if not quantised, an upper bound", scenario::shown(method)));
    }
  }
  const std::string expert = reader.word("expert_dtype", "");
  if (expert == "fp4") {
    out.expert = kMxFp4Bytes;
  } else if (expert == "fp8") {
    out.expert = 1;
  } else if (!expert.empty()) {
    reader.complain("expert_dtype", "is " + scenario::shown(expert) + "; fp4 and fp8 are known");
  }
  return out;
}

void WeightList::add(const std::string& name, std::int64_t count,
                     const std::vector<std::int64_t>& factors, Stored stored, std::int64_t shards) {
  Weight weight;
  weight.name = name;
  weight.count = static_cast<double>(count);
  weight.elements = 1;
  for (const std::int64_t factor : factors) {
    weight.elements *= static_cast<double>(factor);
    if (factor == 1) continue;
    weight.product += (weight.product.empty() ? "" : " x ") + std::to_string(factor);
  }
  if (weight.bytes() == 0) return;
  switch (stored) {
    case Stored::kPlain:
      weight.bytes_each = precision_.plain;
      break;
    case Stored::kDense:
      weight.bytes_each = precision_.dense;
      break;
    case Stored::kExpert:
      weight.bytes_each = precision_.expert;
      break;
    case Stored::kFloat32:
      weight.bytes_each = 4;
      break;
    case Stored::kInt64:
      weight.bytes_each = 8;
      break;
  }
  weight.shards = static_cast<double>(std::max<std::int64_t>(1, shards));
  weights_.push_back(std::move(weight));
}

double WeightList::bytes() const {
  double sum = 0;
  for (const Weight& w : weights_) sum += w.bytes();
  return sum;
}

double WeightList::bytes_per_rank() const {
  double sum = 0;
  for (const Weight& w : weights_) sum += w.bytes_per_rank();
  return sum;
}

double WeightList::elements() const {
  double sum = 0;
  for (const Weight& w : weights_) sum += w.count * w.elements;
  return sum;
}

}  // namespace warmgate::plan::shrink
