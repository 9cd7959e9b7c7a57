// y = x · wᵀ, for every projection that is a plain matrix product.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// Block scales beside quantised weights: fp8 one ue8m0 byte a 128x128 block, fp4 one a 32-value
/// run (published DeepSeek-V4 configs: quantization_config weight_block_size, scale_fmt).
inline std::int64_t scale_bytes(const Tensor& w) {
  if (w.dtype == DType::kFp8) {
    std::int64_t blocks = ceil_div(w.dim(w.rank - 1), 128);
    if (w.rank > 1) blocks *= ceil_div(w.dim(w.rank - 2), 128);
    return w.rank == 3 ? blocks * w.rows() : blocks;
  }
  if (w.dtype == DType::kFp4) return ceil_div(w.elements(), 32);
  return 0;
}
inline std::int64_t weight_bytes(const Tensor& w) { return w.payload_bytes() + scale_bytes(w); }

/// x [T,in] bf16; w [out,in] bf16 | fp8 | fp32; y [T,out] bf16 | fp32. Block scales lie right
/// behind the values; where w is rows of a larger matrix, `whole` is that matrix and w starts with
/// a block.
struct Gemm {
  std::string_view kernel;
  Tensor x, w, y;
  Tensor whole = {};
  std::int64_t first_row() const {
    if (!whole.present()) return 0;
    const auto row = static_cast<std::uint64_t>(w.strides[0] * bits_of(w.dtype) / 8);
    return static_cast<std::int64_t>((w.address - whole.address) / row);
  }
  std::int64_t rows() const { return x.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(x), v(w), v(y), v(x.rows());
  }
};
inline Reason can_run(const Gemm& p) {
  if (p.w.dtype == DType::kFp8 && p.first_row() % 128 != 0) [[unlikely]]
    return fmt::format("rows from {} on: a block of scales starts every 128", p.first_row());
  return first(same("inputs of x and w", p.x.last(), p.w.last()),
               same("outputs of w and y", p.w.rows(), p.y.last()),
               holds_rows("output", p.y, p.x.rows()));
}
inline Cost account(const Gemm& p) {
  return {
      p.x.payload_bytes() + weight_bytes(p.w) + p.x.rows() * p.y.last() * bits_of(p.y.dtype) / 8,
      2 * p.x.rows() * p.w.elements(), 1};
}
void run(const Gemm& p, const Device& device);

/// Row-wise normalisation with weight: x [T,n] → y [T,n], fp32 inside.
struct RmsNorm {
  static constexpr std::string_view kernel = "rms_norm";
  Tensor x, weight, y;
  double eps = 1e-6;
  std::int64_t rows() const { return x.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(x), v(weight), v(y);
  }
};
inline Reason can_run(const RmsNorm& p) {
  return first(same("row and weight", p.x.last(), p.weight.rows()),
               same("row and output", p.x.last(), p.y.last()),
               holds_rows("output", p.y, p.x.rows()));
}
inline Cost account(const RmsNorm& p) {
  return {2 * p.x.payload_bytes() + p.weight.payload_bytes(), 4 * p.x.elements(), 1};
}
void run(const RmsNorm& p, const Device& device);

/// The two norms after the input projection in one kernel: qkv [T,q_lora+D] →
/// qr [T,q_lora], kv [T,D], bf16 out.
struct FusedQkvNorm {
  static constexpr std::string_view kernel = "fused_q_kv_rmsnorm";
  Tensor qkv, q_norm, kv_norm, qr, kv;
  double eps = 1e-6;
  std::int64_t rows() const { return qkv.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(qkv), v(q_norm), v(kv_norm), v(qr), v(kv);
  }
};
inline Reason can_run(const FusedQkvNorm& p) {
  return first(same("fused width and its two parts", p.qkv.last(), p.qr.last() + p.kv.last()),
               same("q part and its norm", p.qr.last(), p.q_norm.rows()),
               same("kv part and its norm", p.kv.last(), p.kv_norm.rows()));
}
inline Cost account(const FusedQkvNorm& p) {
  return {2 * p.qkv.payload_bytes(), 4 * p.qkv.elements(), 1};
}
void run(const FusedQkvNorm& p, const Device& device);

}  // namespace warmgate::engine::ops
