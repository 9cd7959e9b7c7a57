// From tensors to the parameters of kernels/kernels.h. For ops/run_*.cc only.
#pragma once

#include <stdexcept>

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/tensor.h"
#include "kernels/kernels.h"

namespace warmgate::engine::ops::glue {

namespace kernel = warmgate::kernels::cpu;

/// What runs ops on `device`. Throws std::runtime_error where nothing does.
inline kernels::Kernels& on(const Device& device, std::string_view op) {
  if (kernels::Kernels* kernels = device.kernels(); kernels != nullptr) [[likely]]
    return *kernels;
  throw std::runtime_error("no " + std::string(op) + " for device " + std::string(device.name()));
}

/// The first element; null if the tensor is absent.
template <class T>
T* at(const Tensor& t) {
  return t.present() ? reinterpret_cast<T*>(static_cast<std::uintptr_t>(t.address)) : nullptr;
}
inline kernel::Bf16* bf16(const Tensor& t) { return at<kernel::Bf16>(t); }
inline std::uint8_t* bytes(const Tensor& t) { return at<std::uint8_t>(t); }
inline float* fp32(const Tensor& t) { return at<float>(t); }
inline std::int32_t* i32(const Tensor& t) { return at<std::int32_t>(t); }
inline std::int64_t* i64(const Tensor& t) { return at<std::int64_t>(t); }

/// cache [blocks,rows,row] → its pages.
inline kernel::Pages pages(const Tensor& cache) {
  return {bytes(cache), cache.strides[0] * bits_of(cache.dtype) / 8, cache.dim(1)};
}
/// table [requests,blocks] i32, from request `first` on, of pages of `page_rows` rows.
inline kernel::BlockTable table(const Tensor& t, std::int64_t page_rows, std::int64_t first = 0) {
  return {i32(t) + first * t.strides[0], t.strides[0], page_rows};
}

inline kernel::WeightType weight_type(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return kernel::WeightType::kBf16;
    case DType::kFp32:
      return kernel::WeightType::kFp32;
    case DType::kFp8:
      return kernel::WeightType::kFp8;
    case DType::kFp4:
      return kernel::WeightType::kFp4;
    default:
      throw std::runtime_error("weights of type " + std::string(to_string(dtype)));
  }
}

/// w [out,in], scales right behind its values.
inline kernel::Weights weights(const Tensor& w) {
  const bool scaled = scale_bytes(w) > 0;
  return {weight_type(w.dtype), at<const void>(w), scaled ? bytes(w) + w.payload_bytes() : nullptr,
          w.dim(0), w.dim(1)};
}
/// Rows of `whole` from `first` on, as many as w has: their scales lie behind all of whole's
/// values.
inline kernel::Weights weights(const Tensor& w, const Tensor& whole, std::int64_t first) {
  if (!whole.present()) return weights(w);
  kernel::Weights out = weights(w);
  if (out.scales == nullptr) return out;
  out.scales = bytes(whole) + whole.payload_bytes();
  out.scales +=
      w.dtype == DType::kFp8 ? first / 128 * ceil_div(w.last(), 128) : first * w.last() / 32;
  return out;
}
/// Matrix 0 of w [n,out,in], whose scales lie behind the values of all n.
inline kernel::Weights first_matrix(const Tensor& w) {
  return {weight_type(w.dtype), at<const void>(w),
          scale_bytes(w) > 0 ? bytes(w) + w.payload_bytes() : nullptr, w.dim(1), w.dim(2)};
}

}  // namespace warmgate::engine::ops::glue
