// Contents of weights and rotary tables.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "harness/engine/ops/run_tensor.h"
#include "harness/engine/ops/seed_weight.h"

namespace warmgate::engine::ops {

using namespace glue;

namespace {

using Fill = WeightSource::Fill;

kernel::SeededMatrix matrix_of(const Tensor& w, const WeightSource& source, std::uint64_t key) {
  kernel::SeededMatrix out;
  out.key = key;
  out.columns = w.last();
  out.first_column = source.first_column;
  out.whole_columns = source.whole_columns;
  for (std::size_t i = 0; i < 2; ++i) {
    const WeightSource::Rows& rows = source.rows[i];
    out.runs[i] = {rows.first, rows.count,
                   std::clamp<std::int64_t>(rows.end - rows.first, 0, rows.count)};
  }
  if (source.fill == Fill::kMatrix || source.fill == Fill::kTable) {
    const double inputs =
        source.fill == Fill::kTable ? 1 : static_cast<double>(source.whole_columns);
    const double deviation = kernel::kSeededDeviation * std::sqrt(inputs);
    out.exponent = static_cast<int>(std::lround(-std::log2(deviation)));
    return out;
  }
  out.even = true;
  out.offset = source.fill == Fill::kNorm ? 1 : 0;
  out.exponent = source.fill == Fill::kNorm ? -7 : -4;
  return out;
}

void fill(kernels::Kernels& k, const Tensor& w, const kernel::SeededMatrix& m) {
  std::uint8_t* scales = bytes(w) + w.payload_bytes();
  switch (w.dtype) {
    case DType::kBf16:
      return k.fill_seeded(m, bf16(w));
    case DType::kFp32:
      return k.fill_seeded(m, fp32(w));
    case DType::kFp8:
      return k.fill_seeded(m, bytes(w), scales);
    case DType::kFp4:
      return k.fill_seeded_fp4(m, bytes(w), scales);
    default:
      throw std::runtime_error("no contents for weights of type " +
                               std::string(to_string(w.dtype)));
  }
}

}  // namespace

void seed_weight(const Tensor& w, const WeightSource& source, std::uint64_t key,
                 const Device& device) {
  if (source.fill == Fill::kNone) return;
  fill(on(device, "seed_weight"), w, matrix_of(w, source, key));
  if (source.fill != Fill::kSink) return;
  const std::vector<float> none(static_cast<std::size_t>(w.elements() - source.own),
                                -std::numeric_limits<float>::infinity());
  device.write(w.address + static_cast<std::uint64_t>(4 * source.own),
               std::as_bytes(std::span(none)));
}

std::uint64_t weight_key(std::int64_t seed, std::int64_t layer, std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325U;  // FNV-1a
  const auto take = [&](std::uint64_t byte) { h = (h ^ byte) * 0x100000001B3U; };
  for (const std::int64_t part : {seed, layer}) {
    for (int shift = 0; shift < 64; shift += 8)
      take(static_cast<std::uint64_t>(part) >> shift & 255U);
  }
  for (const char c : name) take(static_cast<unsigned char>(c));
  return h;
}

void fill_rope(const Tensor& table, const Rope& rope, std::int64_t rows, const Device& device) {
  kernel::RopeTable t;
  t.rows = std::min(rows, table.rows());
  t.theta = rope.theta;
  t.yarn = rope.yarn;
  t.factor = rope.factor;
  t.beta_fast = rope.beta_fast;
  t.beta_slow = rope.beta_slow;
  t.original_length = rope.original_length;
  t.table = fp32(table);
  on(device, "fill_rope").fill_rope_table(t);
}

}  // namespace warmgate::engine::ops
