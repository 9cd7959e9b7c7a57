// What the prefill kernel needs beside hopper.cuh: 8x8 matrices between shared memory and wgmma's
// register fragments, a look at a barrier, 2^x.
#pragma once

#include <cuda_bf16.h>
#include <stdint.h>

#include "kernels/cuda/hopper.cuh"

namespace warmgate::kernels::cuda {

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l%8 of matrix l/8.
__device__ __forceinline__ void load_matrices(uint32_t (&out)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void store_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// 16 bytes global → shared address; `valid` false writes zeros and reads nothing.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global, bool valid) {
  asm volatile(
      "{\n.reg .pred ignore;\nsetp.eq.u32 ignore, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, ignore;\n}" ::"r"(shared),
      "l"(global), "r"(static_cast<uint32_t>(valid))
      : "memory");
}
/// Whether phase `parity` of the barrier is over, for all lanes of a converged warp.
__device__ __forceinline__ bool is_over(Barrier* barrier, uint32_t parity) {
  uint32_t done = 0;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return __all_sync(~0u, done != 0);
}

__device__ __forceinline__ float power_of_two(float x) {
  float out = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
/// `low` in the lower half.
__device__ __forceinline__ uint32_t bf16_pair(float low, float high) {
  uint32_t out = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}

}  // namespace warmgate::kernels::cuda
