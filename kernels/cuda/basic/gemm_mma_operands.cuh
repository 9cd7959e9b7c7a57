// Operands of mma.m16n8k16 out of 16 bytes of stored weights or inputs.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {

/// Two registers of two bf16 each a step of 16 inputs.
template <int kSteps>
struct Pairs {
  uint32_t x[2 * kSteps];
};

/// Weights pass once: they leave the first-level cache to x. What others read of the line is asked
/// for with it.
__device__ __forceinline__ uint4 load_once(const void* p) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
  return v;
}

__device__ __forceinline__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                    uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Whether any of the four lanes that share a row has bits.
__device__ __forceinline__ bool any_of_four(uint32_t bits) {
  bits |= __shfl_xor_sync(kWholeWarp, bits, 1);
  bits |= __shfl_xor_sync(kWholeWarp, bits, 2);
  return bits != 0;
}

/// Products of bf16 by powers of two, each to the nearest: exact in the range of bf16.
__device__ __forceinline__ uint32_t times(uint32_t pair, uint32_t power) {
  const __nv_bfloat162 product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&pair),
                                         *reinterpret_cast<const __nv_bfloat162*>(&power));
  return *reinterpret_cast<const uint32_t*>(&product);
}

/// Bytes 2i and 2i+1 of a word of e4m3. Sign, exponent and mantissa moved to their places in bf16
/// are the value times 2^(7-127), subnormals included.
template <int i>
__device__ __forceinline__ uint32_t e4m3_pair(uint32_t word) {
  const uint32_t high = __byte_perm(word, 0, i == 0 ? 0x1404 : 0x3424);
  return times((high & 0x80008000u) | (high >> 4 & 0x07F007F0u), 0x7B807B80u);  // 2^120
}
/// Nibbles i and i+4 of a word of e2m1; the same with 2^(1-127).
template <int i>
__device__ __forceinline__ uint32_t e2m1_pair(uint32_t word) {
  const uint32_t high = word << (12 - 4 * i);
  return times((high & 0x80008000u) | (high >> 6 & 0x01C001C0u), 0x7E807E80u);  // 2^126
}
/// ue8m0 in both halves.
__device__ __forceinline__ uint32_t ue8m0_pair(uint32_t byte) {
  const uint32_t one = byte == 0 ? 0x0040u : byte == 255 ? 0x7FC0u : byte << 7;
  return one * 0x00010001u;
}

/// bf16 has no scale; that of fp8 is multiplied in if kScaled. Of fp4, `part` is the half of the 32
/// values. `odd` gets the high bit of every byte that is NaN.
template <cpu::WeightType type, int kSteps, bool kScaled = false>
__device__ __forceinline__ Pairs<kSteps> operands(uint4 v, int part, uint32_t scale,
                                                  uint32_t& odd) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
  Pairs<kSteps> out;
  if constexpr (type == cpu::WeightType::kBf16) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out.x[i] = words[i];
  } else if constexpr (type == cpu::WeightType::kFp8) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      odd |= (words[i] & 0x7F7F7F7Fu) + 0x01010101u;
      out.x[2 * i] = e4m3_pair<0>(words[i]);
      out.x[2 * i + 1] = e4m3_pair<1>(words[i]);
      if constexpr (kScaled) {
        out.x[2 * i] = times(out.x[2 * i], ue8m0_pair(scale));
        out.x[2 * i + 1] = times(out.x[2 * i + 1], ue8m0_pair(scale));
      }
    }
  } else {
    const uint32_t power = ue8m0_pair(scale);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t word = part == 0 ? words[i] : words[2 + i];
      out.x[4 * i] = times(e2m1_pair<0>(word), power);
      out.x[4 * i + 1] = times(e2m1_pair<1>(word), power);
      out.x[4 * i + 2] = times(e2m1_pair<2>(word), power);
      out.x[4 * i + 3] = times(e2m1_pair<3>(word), power);
    }
  }
  return out;
}

/// Inputs (bf16) that go with operands<type>.
template <cpu::WeightType type, int kSteps>
__device__ __forceinline__ Pairs<kSteps> inputs(const uint4* from, bool inside) {
  Pairs<kSteps> out;
#pragma unroll
  for (int i = 0; i < kSteps / 2; ++i) {
    const uint4 v = inside ? __ldg(from + i) : uint4{};
    if constexpr (type == cpu::WeightType::kFp4) {
      out.x[4 * i] = __byte_perm(v.x, v.z, 0x5410);
      out.x[4 * i + 1] = __byte_perm(v.x, v.z, 0x7632);
      out.x[4 * i + 2] = __byte_perm(v.y, v.w, 0x5410);
      out.x[4 * i + 3] = __byte_perm(v.y, v.w, 0x7632);
    } else {
      out.x[4 * i] = v.x, out.x[4 * i + 1] = v.y;
      out.x[4 * i + 2] = v.z, out.x[4 * i + 3] = v.w;
    }
  }
  return out;
}

}  // namespace warmgate::kernels::cuda
