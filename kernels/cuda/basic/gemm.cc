#include "kernels/cuda/basic/gemm.h"

#include <algorithm>

#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/cublaslt.h"
#include "kernels/cuda/basic/gemm_kernels.h"
#include "kernels/cuda/basic/gemm_mma.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::WeightType;
constexpr std::size_t kWorkspace = std::size_t{32} << 20;
constexpr std::int64_t kLeastRows = 64;
// Tokens up to which one reading of the stored weights beats cuBLASLt's product.
constexpr std::int64_t kMostBf16 = 8, kMostSmall = 32;

bool is_stored_small(WeightType type) {
  return type == WeightType::kFp8 || type == WeightType::kFp4;
}
std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Scratch memory, handed out from the front.
class Scratch {
 public:
  explicit Scratch(const Launch& launch)
      : base_(static_cast<char*>(launch.scratch)), left_(launch.scratch_bytes) {
    const auto past = reinterpret_cast<std::uintptr_t>(base_) % 256;
    if (past != 0) drop(256 - past);
  }
  std::size_t left() const { return left_; }
  void* take(std::size_t bytes) {
    void* out = base_;
    drop((bytes + 255) / 256 * 256);
    return out;
  }
  /// What is left, as the scratch of another call.
  Launch rest(const Launch& launch) const {
    Launch out = launch;
    out.scratch = base_;
    out.scratch_bytes = left_;
    return out;
  }

 private:
  void drop(std::size_t bytes) {
    bytes = std::min(bytes, left_);
    base_ += bytes;
    left_ -= bytes;
  }
  char* base_;
  std::size_t left_;
};

/// cuBLASLt's part of the scratch: less where there is little.
std::size_t workspace_of(const Scratch& scratch) {
  return std::min(kWorkspace, scratch.left() / 4 / 256 * 256);
}

std::size_t bytes_of_rows(const cpu::Weights& w, std::int64_t rows) {
  return static_cast<std::size_t>(rows * round_up(w.columns, 8) * 2);
}
std::size_t least_bytes(const cpu::Weights& w) {
  return is_stored_small(w.type) ? 2 * bytes_of_rows(w, kLeastRows) + 1024 : 0;
}

cpu::Gemm with_strides(const cpu::Gemm& p) {
  cpu::Gemm out = p;
  if (out.x_stride <= 0) out.x_stride = p.w.columns;
  if (out.y_stride <= 0) out.y_stride = p.w.rows;
  return out;
}

void* element(void* y, cpu::OutputType type, std::int64_t at) {
  return static_cast<char*>(y) + at * (type == cpu::OutputType::kFp32 ? 4 : 2);
}

/// p with bf16 weights. Where cuBLASLt has no kernel after all, tiles.
void multiply_bf16(const cpu::Gemm& p, void* workspace, std::size_t bytes, const Launch& launch) {
  Product product;
  product.tokens = p.tokens;
  product.outputs = p.w.rows;
  product.inputs = product.w_stride = p.w.columns;
  product.x = p.x;
  product.x_stride = p.x_stride;
  product.w = p.w.data;
  product.y = p.y;
  product.y_stride = p.y_stride;
  product.y_fp32 = p.y_type == cpu::OutputType::kFp32;
  if (!multiply(product, workspace, bytes, launch.stream)) multiply_tiles(p, 0, launch);
}

/// Widths and addresses that matrix units like; all others go to tiles.
bool for_cublaslt(const cpu::Gemm& p) {
  return have_cublaslt() && p.w.type != WeightType::kFp32 && p.x_stride % 8 == 0 &&
         p.y_stride % 8 == 0 && aligned(p.x) && aligned(p.y) && p.w.columns % 8 == 0 &&
         p.w.rows % 8 == 0 && (p.w.type != WeightType::kBf16 || aligned(p.w.data));
}

bool by_mma(const cpu::Gemm& p) {
  const std::int64_t most = is_stored_small(p.w.type) ? kMostSmall : kMostBf16;
  return (p.tokens <= most || !have_cublaslt()) && fits_mma(p);
}
bool by_mma(const cpu::GroupedProjection& p) {
  return (p.tokens <= kMostSmall || !have_cublaslt()) && fits_mma(p);
}

}  // namespace

const std::string& gemm_note() {
  static const std::string note =
      have_cublaslt() ? "cuBLASLt: " + cublaslt_note()
                      : "own kernels, slow: cuBLASLt is missing: " + cublaslt_note();
  return note;
}

Reason can_run(const cpu::Gemm& p, const Launch& launch) {
  const cpu::Gemm strided = with_strides(p);
  const bool widens = p.tokens > kFewTokens && !by_mma(strided) && for_cublaslt(strided);
  return refuse(widens && launch.scratch_bytes < least_bytes(p.w),
                "gemm: too little scratch memory for rows of w as bf16");
}

void run(const cpu::Gemm& in, const Launch& launch) {
  const cpu::Gemm p = with_strides(in);
  if (p.tokens <= 0 || p.w.rows <= 0) return;
  if (by_mma(p)) return multiply_mma(p, launch);
  if (p.tokens <= kFewTokens) return multiply_few(p, 0, launch);
  if (!for_cublaslt(p)) return multiply_tiles(p, 0, launch);
  Scratch scratch(launch);
  const std::size_t bytes = workspace_of(scratch);
  void* workspace = scratch.take(bytes);
  if (p.w.type == WeightType::kBf16) {
    return multiply_bf16(p, workspace, bytes, launch);
  }
  const std::int64_t row_bytes = p.w.columns * 2;
  const std::int64_t fit = static_cast<std::int64_t>(scratch.left()) / row_bytes / kLeastRows;
  const std::int64_t at_once = std::min(p.w.rows, std::max<std::int64_t>(fit, 1) * kLeastRows);
  auto* wide = static_cast<cpu::Bf16*>(scratch.take(bytes_of_rows(p.w, at_once)));
  for (std::int64_t first = 0; first < p.w.rows; first += at_once) {
    const std::int64_t count = std::min(at_once, p.w.rows - first);
    widen_weights(p.w, first, count, p.w.columns, wide, launch);
    cpu::Gemm part = p;
    part.w = {WeightType::kBf16, wide, nullptr, count, p.w.columns};
    part.y = element(p.y, p.y_type, first);
    multiply_bf16(part, workspace, bytes, launch);
  }
}

namespace {

std::size_t token_bytes(const cpu::GroupedProjection& p) {
  return static_cast<std::size_t>(p.groups * p.inputs * 2);
}

}  // namespace

Reason can_run(const cpu::GroupedProjection& p, const Launch& launch) {
  return first_of(
      refuse(!is_stored_small(p.w.type), "grouped projection: weights are not quantised"),
      refuse(launch.scratch_bytes < token_bytes(p) * 2 + least_bytes(p.w) + 4096,
             "grouped projection: too little scratch memory"));
}

void run(const cpu::GroupedProjection& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  if (by_mma(p)) return multiply_mma(p, launch);
  Scratch scratch(launch);
  const bool by_lt = have_cublaslt() && p.inputs % 8 == 0 && p.rank % 8 == 0 && aligned(p.z);
  const std::size_t whole = bytes_of_rows(p.w, p.w.rows);
  // All of w as bf16 once, if half of the scratch holds it; else group by group, and slow.
  const bool batched = by_lt && p.tokens > kFewTokens && whole <= scratch.left() / 2;
  const std::size_t bytes =
      batched ? std::min(kWorkspace, (scratch.left() - whole) / 4 / 256 * 256) : 0;
  void* workspace = scratch.take(bytes);
  cpu::Bf16* wide = nullptr;
  if (batched) {
    wide = static_cast<cpu::Bf16*>(scratch.take(whole));
    widen_weights(p.w, 0, p.w.rows, p.inputs, wide, launch);
  }
  const std::size_t for_x = batched ? scratch.left() : scratch.left() / 2;
  const std::int64_t at_once =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(for_x / token_bytes(p)), 1, p.tokens);
  auto* x =
      static_cast<cpu::Bf16*>(scratch.take(static_cast<std::size_t>(at_once) * token_bytes(p)));
  const std::int64_t blocks = blocks_for(p.inputs, 128);
  for (std::int64_t first = 0; first < p.tokens; first += at_once) {
    const std::int64_t count = std::min(at_once, p.tokens - first);
    widen_inputs(p.x + first * p.groups * p.inputs, p.x_scales + first * p.groups * blocks,
                 count * p.groups, p.inputs, x, launch);
    cpu::Bf16* z = p.z + first * p.groups * p.rank;
    if (batched) {
      Product product;
      product.tokens = count, product.outputs = p.rank, product.inputs = p.inputs;
      product.batch = p.groups;
      product.x = x, product.x_stride = p.groups * p.inputs, product.x_batch = p.inputs;
      product.w = wide, product.w_stride = p.inputs, product.w_batch = p.rank * p.inputs;
      product.y = z, product.y_stride = p.groups * p.rank, product.y_batch = p.rank;
      if (multiply(product, workspace, bytes, launch.stream)) continue;
    }
    for (std::int64_t g = 0; g < p.groups; ++g) {
      cpu::Gemm one;
      one.tokens = count;
      one.x = x + g * p.inputs, one.x_stride = p.groups * p.inputs;
      one.y = z + g * p.rank, one.y_stride = p.groups * p.rank;
      one.w = p.w;
      one.w.rows = p.rank;
      if (count <= kFewTokens) {
        multiply_few(one, g * p.rank, launch);
      } else {
        multiply_tiles(one, g * p.rank, launch);
      }
    }
  }
}

namespace {

std::size_t token_bytes(const cpu::GatedMlp& p) {
  return static_cast<std::size_t>(round_up(p.w2.columns * 2, 128) + round_up(p.w2.columns, 128)) *
         2;
}

}  // namespace

Reason can_run(const cpu::GatedMlp& p, const Launch& launch) {
  const std::size_t products = std::max(least_bytes(p.w13), least_bytes(p.w2));
  return refuse(launch.scratch_bytes < 2 * std::max(token_bytes(p), products) + 4096,
                "gated MLP: too little scratch memory");
}

void run(const cpu::GatedMlp& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  Scratch scratch(launch);
  const std::int64_t inter = p.w2.columns, hidden = p.w13.columns;
  const std::int64_t at_once = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(scratch.left() / 2 / token_bytes(p)), 1, p.tokens);
  const auto count = static_cast<std::size_t>(at_once * inter);
  auto* gate_up = static_cast<cpu::Bf16*>(scratch.take(2 * count * 2));
  auto* h = static_cast<cpu::Bf16*>(scratch.take(count * 2));
  const Launch inner = scratch.rest(launch);
  for (std::int64_t first = 0; first < p.tokens; first += at_once) {
    const std::int64_t tokens = std::min(at_once, p.tokens - first);
    run(cpu::Gemm{tokens, p.x + first * hidden, p.w13, cpu::OutputType::kBf16, gate_up}, inner);
    activate(tokens, inter, gate_up, p.limit, h, launch);
    run(cpu::Gemm{tokens, h, p.w2, cpu::OutputType::kBf16, p.y + first * p.w2.rows}, inner);
  }
}

}  // namespace warmgate::kernels::cuda
