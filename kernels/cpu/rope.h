// Rotary position embedding on the last 64 channels, interleaved pairs (2i, 2i+1), fp32 inside.
#pragma once

#include <cstdint>

namespace warmgate::kernels::cpu {

constexpr std::int64_t kRopeDims = 64;
constexpr std::int64_t kRopePairs = 32;

/// Fills rows 0..rows-1 of table [rows,64] fp32: cos of the 32 pairs, then sin. Pair i turns with
/// f = theta^(-2i/64); with YaRN f·(1-ramp) + f/factor·ramp, ramp from
/// low = floor(corr(beta_fast)) >= 0 to high = ceil(corr(beta_slow)) <= 63,
/// corr(n) = 64·ln(original_length/(2πn)) / (2·ln theta); no magnitude scale.
/// Angles are position·frequency in double and rounded once.
/// Origin: YaRN (arXiv:2309.00071) as in vLLM at d40c3e3c00,
/// model_executor/layers/rotary_embedding/common.py yarn_find_correction_range.
struct RopeTable {
  std::int64_t rows = 0;
  double theta = 10000;
  bool yarn = true;
  double factor = 16, beta_fast = 32, beta_slow = 1;
  std::int64_t original_length = 65536;
  float* table = nullptr;
};
void fill_rope_table(const RopeTable& p);

/// x[0..63] at one position; `row` is that position's row of the table.
/// e' = e·cos - o·sin, o' = o·cos + e·sin; inverse: the sines change sign.
void rotate(float* x, const float* row);
void rotate_back(float* x, const float* row);

}  // namespace warmgate::kernels::cpu
