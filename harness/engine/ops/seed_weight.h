// Contents of weights on devices that execute: made from a seed, since presets carry none. What a
// rank holds are exactly the elements that the whole matrix has in its place
// (kernels/cpu/seeded.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

/// Where one rank's part of a weight lies in the whole, and what is in it.
struct WeightSource {
  enum class Fill : std::uint8_t {
    kNone,    // never read: stays as it was allocated
    kMatrix,  // values of standard deviation 1/sqrt(inputs of the whole)
    kTable,   // rows that are looked up, not summed over: standard deviation 1
    kNorm,    // around 1
    kBias,    // around 0, standard deviation 0.4
    kSink     // the same, and -inf behind the rank's own elements
  };
  /// `count` rows in a row, from row `first` of the whole; those beyond `end` of the whole are 0.
  struct Rows {
    std::int64_t first = 0, count = 0, end = 0;
  };
  Fill fill = Fill::kNone;
  Rows rows[2];
  std::int64_t first_column = 0, whole_columns = 0;
  std::int64_t own = 0;  // kSink
};

namespace ops {

/// Fills w, its block scales included where it has any (right behind the values); of a weight of
/// three dimensions the first matrix alone. `key`: of the weight, the same on all ranks.
void seed_weight(const Tensor& w, const WeightSource& source, std::uint64_t key,
                 const Device& device);

/// A hash of all its parts.
std::uint64_t weight_key(std::int64_t seed, std::int64_t layer, std::string_view name);

/// Constants of a rotary table.
struct Rope {
  double theta = 0;
  bool yarn = true;
  double factor = 1, beta_fast = 32, beta_slow = 1;
  std::int64_t original_length = 0;
};
/// The first `rows` rows of table [rows of the model,R] fp32: cosines, then sines.
void fill_rope(const Tensor& table, const Rope& rope, std::int64_t rows, const Device& device);

}  // namespace ops
}  // namespace warmgate::engine
