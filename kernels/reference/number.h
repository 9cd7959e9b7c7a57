// The number formats of weights, activations and caches, by definition: a code's value from sign,
// exponent and fraction, the code of a value by searching the grid of values. No bit tricks.
#pragma once

#include <cstdint>

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

/// OCP FP8 e4m3 without infinities: 1-4-3, bias 7, largest 448; 0x7F and 0xFF are NaN.
double e4m3_value(std::uint8_t code);
/// Nearest value, ties to the even code; beyond 448 the answer is 448; NaN gives 0x7F.
std::uint8_t e4m3_code(double x);

/// bfloat16: 1-8-7, bias 127.
double bf16_value(std::uint16_t code);
/// Nearest value, ties to the even code; overflow gives infinity; NaN gives 0x7FC0.
std::uint16_t bf16_code(double x);
/// x rounded to bf16.
double bf16(double x);
/// Each value rounded to bf16.
Vector bf16(View x);

/// x rounded to fp32.
double fp32(double x);

/// OCP MX scale: 2^(code - 127); 255 is NaN.
double ue8m0_value(std::uint8_t code);
/// The code of 2^exponent; throws std::domain_error outside -127..127.
std::uint8_t ue8m0_code(int exponent);

/// OCP FP4 e2m1 in the low nibble: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
double e2m1_value(std::uint8_t nibble);
/// Nearest value, ties to the even code; beyond 6 the answer is 6.
std::uint8_t e2m1_code(double x);

/// The smallest e with max(amax, floor) <= largest * 2^e, that is
/// ceil(log2(max(amax,floor)/largest)). vLLM at d40c3e3c00,
/// vllm/models/deepseek_v4/common/ops/cache_utils.py.
int scale_exponent(double amax, double floor, double largest);

/// Little-endian stored values as doubles; the size must be a multiple of the element's.
Vector bf16_values(Bytes stored);
Vector fp32_values(Bytes stored);
Vector e4m3_values(Bytes stored);

}  // namespace warmgate::reference
