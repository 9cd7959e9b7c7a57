// Number formats on the device, to the bit as kernels/cpu/formats.h defines them: bf16, e4m3fn,
// ue8m0, e2m1; roundings to nearest, ties to even, saturating where the format has no infinity.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <stdint.h>

namespace warmgate::kernels::cuda {

__device__ __forceinline__ float bf16_to_float(uint16_t value) {
  return __uint_as_float(static_cast<uint32_t>(value) << 16);
}
__device__ __forceinline__ uint16_t to_bf16(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
__device__ __forceinline__ float round_to_bf16(float value) {
  return bf16_to_float(to_bf16(value));
}

__device__ __forceinline__ float e4m3_to_float(uint8_t value) {
  const __half_raw half = __nv_cvt_fp8_to_halfraw(value, __NV_E4M3);
  return __half2float(__half(half));
}
__device__ __forceinline__ uint8_t to_e4m3(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}
/// Two at once: the first in the low byte.
__device__ __forceinline__ uint16_t to_e4m3x2(float first, float second) {
  return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE, __NV_E4M3);
}

/// 2^(byte-127); 255 is NaN, 0 is 2^-127 (a subnormal).
__device__ __forceinline__ float ue8m0_to_float(uint8_t byte) {
  if (byte == 0) return __uint_as_float(0x00400000u);
  if (byte == 255) return __uint_as_float(0x7FC00000u);
  return __uint_as_float(static_cast<uint32_t>(byte) << 23);
}

}  // namespace warmgate::kernels::cuda
