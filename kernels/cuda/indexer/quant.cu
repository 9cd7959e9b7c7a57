// A warp a row: one token and head, four channels a lane. Lanes 16..31 hold the 64
// rotated channels as two pairs each. Products and sums of the rotation are rounded one by one, as
// on the CPU.
#include "kernels/cuda/indexer/quant.h"

#include <cmath>

#include "kernels/cuda/formats.cuh"

namespace warmgate::kernels::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kChannels = 4;  // a lane

struct Params {
  int64_t rows, heads;
  const uint16_t* iq;
  const uint16_t* weights;
  const float* cos_sin;
  const int64_t* positions;
  uint8_t* q;
  uint8_t* q_scales;
  float* w;
  float factor;
};

// Magnitudes order like their bits; NaN does not count.
__device__ __forceinline__ uint32_t magnitude(float x) {
  const uint32_t a = __float_as_uint(x) & 0x7FFFFFFFu;
  return a > 0x7F800000u ? 0u : a;
}

// ue8m0 of ceil(log2(max(amax, floor)/largest)); an infinite amax gives 255.
__device__ __forceinline__ uint32_t row_scale_byte(uint32_t amax, float floor, float largest) {
  const uint32_t u = __float_as_uint(__fdiv_rn(fmaxf(__uint_as_float(amax), floor), largest));
  return (u >> 23) + ((u & 0x7FFFFFu) != 0 ? 1u : 0u);
}
__device__ __forceinline__ float inverse_of(uint32_t byte) {
  return __uint_as_float((254u - byte) << 23);
}

__device__ __forceinline__ uint32_t to_e2m1(float value) {
  const float a = fabsf(value);
  // Thresholds midway; ties go to the even code, so they alternate between <= and <.
  uint32_t code = 7;
  if (a <= 5.0f) code = 6;
  if (a < 3.5f) code = 5;
  if (a <= 2.5f) code = 4;
  if (a < 1.75f) code = 3;
  if (a <= 1.25f) code = 2;
  if (a < 0.75f) code = 1;
  if (a <= 0.25f) code = 0;
  const bool negative = value == value && (__float_as_uint(value) >> 31) != 0;
  return code | (negative ? 8u : 0u);
}

template <bool kWide>
__device__ __forceinline__ void load(const uint16_t* in, float (&x)[kChannels]) {
  if constexpr (kWide) {
    const uint2 raw = __ldg(reinterpret_cast<const uint2*>(in));
    x[0] = __uint_as_float(raw.x << 16);
    x[1] = __uint_as_float(raw.x & 0xFFFF0000u);
    x[2] = __uint_as_float(raw.y << 16);
    x[3] = __uint_as_float(raw.y & 0xFFFF0000u);
  } else {
#pragma unroll
    for (int i = 0; i < kChannels; ++i) x[i] = bf16_to_float(in[i]);
  }
}

template <bool kWide, class T>
__device__ __forceinline__ void store(uint8_t* out, T bytes) {
  if constexpr (kWide) {
    *reinterpret_cast<T*>(out) = bytes;
  } else {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T)); ++i) {
      out[i] = static_cast<uint8_t>(bytes >> (8 * i));
    }
  }
}

template <bool kFp8, bool kWide>
__global__ void __launch_bounds__(32 * kWarps) indexer_quant_kernel(const Params p) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= p.rows) return;
  const int64_t token = row / p.heads;
  float x[kChannels];
  load<kWide>(p.iq + row * cpu::kIndexDim + lane * kChannels, x);
  if (lane >= 16) {
    const float* angles = p.cos_sin + p.positions[token] * 64;
#pragma unroll
    for (int i = 0; i < kChannels; i += 2) {
      const int pair = (lane - 16) * 2 + i / 2;
      const float e = x[i], o = x[i + 1], c = angles[pair], s = angles[32 + pair];
      x[i] = __fsub_rn(__fmul_rn(e, c), __fmul_rn(o, s));
      x[i + 1] = __fadd_rn(__fmul_rn(o, c), __fmul_rn(e, s));
    }
  }
  uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    x[i] = round_to_bf16(x[i]);
    amax = max(amax, magnitude(x[i]));
  }
  float w = 0;
  if (lane == 0) w = __fmul_rn(bf16_to_float(p.weights[row]), p.factor);
  if constexpr (kFp8) {
    const uint32_t byte = row_scale_byte(__reduce_max_sync(0xFFFFFFFFu, amax), 1e-4f, 448.0f);
    const float inverse = inverse_of(byte);
    const uint32_t low = to_e4m3x2(x[0] * inverse, x[1] * inverse);
    const uint32_t high = to_e4m3x2(x[2] * inverse, x[3] * inverse);
    store<kWide>(p.q + row * 128 + lane * 4, low | high << 16);
    if (lane == 0) p.w[row] = __fmul_rn(w, ue8m0_to_float(static_cast<uint8_t>(byte)));
  } else {
    // Eight lanes share a run of 32 channels.
#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
      amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, step));
    }
    const uint32_t byte = row_scale_byte(amax, 6.0f * 0x1p-126f, 6.0f);
    const float inverse = inverse_of(byte);
    uint32_t nibbles = 0;
#pragma unroll
    for (int i = 0; i < kChannels; ++i) nibbles |= to_e2m1(x[i] * inverse) << (4 * i);
    store<kWide>(p.q + row * 64 + lane * 2, static_cast<uint16_t>(nibbles));
    if (lane % 8 == 0) p.q_scales[row * 4 + lane / 8] = static_cast<uint8_t>(byte);
    if (lane == 0) p.w[row] = w;
  }
}

template <bool kFp8>
void start(const Params& params, bool wide, const Launch& launch) {
  const auto blocks = static_cast<unsigned>((params.rows + kWarps - 1) / kWarps);
  if (wide) {
    indexer_quant_kernel<kFp8, true><<<blocks, 32 * kWarps, 0, launch.stream>>>(params);
  } else {
    indexer_quant_kernel<kFp8, false><<<blocks, 32 * kWarps, 0, launch.stream>>>(params);
  }
}

}  // namespace

Reason can_run(const cpu::IndexerQuant& p, const Launch& launch) {
  if (launch.arch < 80) return "indexer_quant: needs arch >= 80";
  if (p.tokens * p.heads > (int64_t{1} << 33)) return "indexer_quant: more than 2^33 rows";
  return {};
}

void run(const cpu::IndexerQuant& p, const Launch& launch) {
  if (p.tokens <= 0 || p.heads <= 0) return;
  // In the CPU kernel's order of roundings.
  const float factor =
      1.0F / std::sqrt(static_cast<float>(cpu::kIndexDim)) / std::sqrt(static_cast<float>(p.heads));
  const Params params{p.tokens * p.heads, p.heads, p.iq,       p.weights, p.cos_sin,
                      p.positions,        p.q,     p.q_scales, p.w,       factor};
  const bool wide = reinterpret_cast<std::uintptr_t>(p.iq) % 8 == 0 &&
                    reinterpret_cast<std::uintptr_t>(p.q) % 4 == 0;
  if (p.format == cpu::IndexFormat::kFp8) {
    start<true>(params, wide, launch);
  } else {
    start<false>(params, wide, launch);
  }
  check_launch("indexer_quant");
}

}  // namespace warmgate::kernels::cuda
