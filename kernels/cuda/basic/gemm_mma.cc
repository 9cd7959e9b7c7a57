#include "kernels/cuda/basic/gemm_mma.h"

#include "kernels/cuda/basic/align.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::WeightType;
constexpr int kStepBytes = 128;
constexpr int kWarps = 12;  // a multiprocessor, before warps share rows

std::int64_t row_bytes(const cpu::Weights& w) {
  if (w.type == WeightType::kBf16) return w.columns * 2;
  return w.type == WeightType::kFp8 ? w.columns : w.columns / 2;
}

// Offsets inside a tile are 32 bits wide.
bool fits(const cpu::Weights& w, const void* x, std::int64_t x_stride_bytes) {
  const std::int64_t bytes = row_bytes(w);
  return w.type != WeightType::kFp32 && bytes > 0 && bytes % 16 == 0 && bytes < 1 << 24 &&
         aligned(w.data) && aligned(x) && x_stride_bytes % 16 == 0 && x_stride_bytes >= 0 &&
         x_stride_bytes < 1 << 24;
}

MmaParams of_weights(const cpu::Weights& w) {
  MmaParams out;
  out.w = static_cast<const unsigned char*>(w.data);
  out.scales = w.scales;
  out.row_bytes = row_bytes(w);
  out.rows = w.rows;
  out.steps = static_cast<int>(blocks_for(out.row_bytes, kStepBytes));
  return out;
}

// Two tiles share what preparing x costs (`dear`: much beside the bytes of w), if there are enough.
int row_tiles(const MmaParams& p, bool dear, MmaCut cut, const Launch& launch) {
  if (cut.row_tiles > 0) return cut.row_tiles;
  return dear && p.rows * p.groups >= 32 * static_cast<std::int64_t>(processors(launch)) ? 2 : 1;
}

}  // namespace

bool fits_mma(const cpu::Gemm& p) {
  return (p.w.type != WeightType::kFp4 || p.w.columns % 32 == 0) &&
         fits(p.w, p.x, p.tokens == 1 ? 0 : p.x_stride * 2);
}

void multiply_mma(const cpu::Gemm& p, const Launch& launch, MmaCut cut) {
  MmaParams out = of_weights(p.w);
  out.x = reinterpret_cast<const unsigned char*>(p.x);
  out.x_stride = p.tokens == 1 ? 0 : p.x_stride * 2;
  out.y = p.y;
  out.y_stride = p.y_stride;
  out.y_fp32 = p.y_type == cpu::OutputType::kFp32;
  out.tokens = p.tokens;
  const int tiles = row_tiles(out, p.w.type == WeightType::kFp4, cut, launch);
  const int warps = cut.warps > 0 ? cut.warps : kWarps;
  if (p.w.type == WeightType::kBf16) return launch_mma_bf16(out, tiles, warps, launch);
  if (p.w.type == WeightType::kFp8) return launch_mma_fp8(out, tiles, warps, launch);
  launch_mma_fp4(out, tiles, warps, launch);
}

bool fits_mma(const cpu::GroupedProjection& p) {
  return p.w.type == WeightType::kFp8 && p.w.columns == p.inputs &&
         fits(p.w, p.x, p.groups * p.inputs);
}

void multiply_mma(const cpu::GroupedProjection& p, const Launch& launch, MmaCut cut) {
  MmaParams out = of_weights(p.w);
  out.rows = p.rank;
  out.groups = p.groups;
  out.x = p.x;
  out.x_stride = p.groups * p.inputs;
  out.x_group = p.inputs;
  out.x_scales = p.x_scales;
  out.y = p.z;
  out.y_stride = p.groups * p.rank;
  out.y_group = p.rank;
  out.tokens = p.tokens;
  launch_mma_grouped(out, row_tiles(out, true, cut, launch), cut.warps > 0 ? cut.warps : kWarps,
                     launch);
}

}  // namespace warmgate::kernels::cuda
