// Eight lanes a row, sixteen channels a lane: eight of those that stay and eight of those that
// turn, so that all lanes have the same to do. A warp takes four rows at a time and kSteps times as
// many in all, loaded before the first is used. To the bit as on the CPU: products and sums of the
// rotation are rounded one by one.
#include "kernels/cuda/indexer/quant.h"

#include <cmath>

#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kSteps = 2;          // at most eight, the lanes of a row
constexpr int kRows = 4 * kSteps;  // a warp

struct Params {
  uint32_t rows, heads;
  const uint16_t* iq;
  const uint16_t* weights;
  const float* cos_sin;
  const int64_t* positions;
  uint8_t* q;
  uint8_t* q_scales;
  float* w;
  float factor;
};

// kWide: everything is aligned as its vectors are.
template <bool kWide>
__device__ __forceinline__ uint4 load8(const uint16_t* in) {
  if constexpr (kWide) {
    return __ldg(reinterpret_cast<const uint4*>(in));
  } else {
    uint32_t out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = in[2 * i] | static_cast<uint32_t>(in[2 * i + 1]) << 16;
    return {out[0], out[1], out[2], out[3]};
  }
}
template <bool kWide>
__device__ __forceinline__ Angles load_angles(const Params& p, uint32_t token, int part) {
  const float* row = p.cos_sin + p.positions[token] * 64;
  if constexpr (kWide) {
    return angles_of(row, part);
  } else {
    const float *c = row + 4 * part, *s = row + 32 + 4 * part;
    return {{c[0], c[1], c[2], c[3]}, {s[0], s[1], s[2], s[3]}};
  }
}
template <bool kWide, class T>
__device__ __forceinline__ void store(uint8_t* out, T bytes) {
  if constexpr (kWide) {
    *reinterpret_cast<T*>(out) = bytes;
  } else {
    const auto* from = reinterpret_cast<const uint8_t*>(&bytes);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T)); ++i) out[i] = from[i];
  }
}

// e2m1 codes of eight values. A product below one becomes a subnormal number, so that half of one
// is the last bit that is kept in every range; what is dropped rounds to even. NaN has no sign.
__device__ __forceinline__ uint32_t to_e2m1(const Eight& v, float inverse) {
  uint32_t out = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint32_t u = __float_as_uint(v.x[i] * inverse * 0x1p-126f), a = u & 0x7FFFFFFFu;
    const uint32_t code = min((a + 0x1FFFFFu + (a >> 22 & 1u)) >> 22, 7u);
    const uint32_t sign = a > 0x7F800000u ? 0u : u >> 31 << 3;
    out |= (code | sign) << (4 * i);
  }
  return out;
}

template <bool kFp8, bool kWide>
__global__ void __launch_bounds__(32 * kWarps) indexer_quant_kernel(const Params p) {
  const int lane = threadIdx.x % 32, part = lane % 8;
  const uint32_t warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const uint32_t first = warp * kRows + lane / 8;  // of this lane's rows; the others follow by four
  uint4 stay[kSteps], turn[kSteps];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    stay[s] = turn[s] = uint4{0, 0, 0, 0};
    if (first + 4 * s < p.rows) {
      const uint16_t* in = p.iq + static_cast<int64_t>(first + 4 * s) * cpu::kIndexDim + 8 * part;
      stay[s] = load8<kWide>(in);
      turn[s] = load8<kWide>(in + 64);
    }
  }
  // Lane `part` < kSteps of a row's eight writes the weight of row first + 4·part.
  const uint32_t own = first + 4 * part;
  const bool owns = part < kSteps && own < p.rows;
  float w = 0;
  if (owns) w = __fmul_rn(bf16_to_float(p.weights[own]), p.factor);
  uint32_t token = first / p.heads, head = first - token * p.heads, own_byte = 0;
  Angles angles{};
  if (first < p.rows) angles = load_angles<kWide>(p, token, part);
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const uint32_t row = first + 4 * s;
    const bool valid = row < p.rows;
    if (head >= p.heads && valid) {
      for (; head >= p.heads; head -= p.heads) ++token;
      angles = load_angles<kWide>(p, token, part);
    }
    head += 4;
    Eight turned = widen(turn[s]);
    rotate<false>(turned, angles.cosines, angles.sines);
    turn[s] = narrow(turned);
    uint32_t low = magnitude_of(stay[s]), high = magnitude_of(turn[s]);
    uint8_t* out = p.q + static_cast<int64_t>(row) * (kFp8 ? 128 : 64) + part * (kFp8 ? 8 : 4);
    if constexpr (kFp8) {
      const uint32_t byte = e4m3_scale_byte(largest_of<8>(max(low, high)), kFloor1e4);
      const float inverse = inverse_scale(byte);
      if (valid) {
        store<kWide>(out, quantise(widen(stay[s]), inverse));
        store<kWide>(out + 64, quantise(widen(turn[s]), inverse));
      }
      if (part == s) own_byte = byte;
    } else {
      low = e2m1_scale_byte(largest_of<4>(low));
      high = e2m1_scale_byte(largest_of<4>(high));
      if (valid) {
        store<kWide>(out, to_e2m1(widen(stay[s]), inverse_scale(low)));
        store<kWide>(out + 32, to_e2m1(widen(turn[s]), inverse_scale(high)));
        if (part % 4 == 0) {
          uint8_t* scales = p.q_scales + static_cast<int64_t>(row) * 4 + part / 4;
          scales[0] = static_cast<uint8_t>(low);
          scales[2] = static_cast<uint8_t>(high);
        }
      }
    }
  }
  if (kFp8) w = __fmul_rn(w, ue8m0_to_float(static_cast<uint8_t>(own_byte)));
  if (owns) p.w[own] = w;
}

template <bool kFp8>
void start(const Params& params, bool wide, const Launch& launch) {
  const unsigned blocks = (params.rows + kWarps * kRows - 1) / (kWarps * kRows);
  if (wide) {
    indexer_quant_kernel<kFp8, true><<<blocks, 32 * kWarps, 0, launch.stream>>>(params);
  } else {
    indexer_quant_kernel<kFp8, false><<<blocks, 32 * kWarps, 0, launch.stream>>>(params);
  }
}

bool aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

}  // namespace

Reason can_run(const cpu::IndexerQuant& p, const Launch& launch) {
  if (launch.arch < 80) return "indexer_quant: needs arch >= 80";
  // 512 GiB of queries.
  if (p.tokens * p.heads > (int64_t{1} << 31)) return "indexer_quant: more than 2^31 rows";
  return {};
}

void run(const cpu::IndexerQuant& p, const Launch& launch) {
  if (p.tokens <= 0 || p.heads <= 0) return;
  // In the CPU kernel's order of roundings.
  const float factor =
      1.0F / std::sqrt(static_cast<float>(cpu::kIndexDim)) / std::sqrt(static_cast<float>(p.heads));
  const Params params{static_cast<uint32_t>(p.tokens * p.heads),
                      static_cast<uint32_t>(p.heads),
                      p.iq,
                      p.weights,
                      p.cos_sin,
                      p.positions,
                      p.q,
                      p.q_scales,
                      p.w,
                      factor};
  const bool wide = aligned(p.iq, 16) && aligned(p.cos_sin, 16) && aligned(p.q, 8);
  if (p.format == cpu::IndexFormat::kFp8) {
    start<true>(params, wide, launch);
  } else {
    start<false>(params, wide, launch);
  }
  check_launch("indexer_quant");
}

}  // namespace warmgate::kernels::cuda
