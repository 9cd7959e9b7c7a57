// Products of the full model's shapes for the tokens of a decode step, and for some more.
#include <fmt/format.h>

#include <algorithm>

#include "ci/bench/gpu/bench.h"
#include "kernels/cuda/basic/gemm.h"

namespace warmgate::bench {
namespace {

using namespace kernels;
using cpu::OutputType;
using cpu::WeightType;

struct Shape {
  const char* name;
  WeightType type;
  std::int64_t rows, columns;
  OutputType out;
  std::int64_t groups;  // 0: a plain product
};
// fixtures/models/deepseek-v4-flash-0731.yaml on one GPU.
constexpr Shape kShapes[] = {
    {"wo_a (grouped)", WeightType::kFp8, 8192, 4096, OutputType::kBf16, 8},
    {"wo_b", WeightType::kFp8, 4096, 8192, OutputType::kBf16, 0},
    {"wq_b", WeightType::kFp8, 32768, 1024, OutputType::kBf16, 0},
    {"fused_wqa_wkv", WeightType::kFp8, 1536, 4096, OutputType::kBf16, 0},
    {"indexer wq_b", WeightType::kFp8, 8192, 1024, OutputType::kBf16, 0},
    {"compressor, ratio 4", WeightType::kBf16, 2048, 4096, OutputType::kFp32, 0},
    {"indexer compressor", WeightType::kBf16, 512, 4096, OutputType::kFp32, 0},
    {"indexer weights_proj", WeightType::kBf16, 64, 4096, OutputType::kBf16, 0},
    {"fp4, 8 experts", WeightType::kFp4, 32768, 4096, OutputType::kBf16, 0},
    {"lm_head", WeightType::kBf16, 129280, 4096, OutputType::kFp32, 0},
};
constexpr std::int64_t kTokens[] = {1, 4, 8, 16, 64};
constexpr std::int64_t kMostTokens = 64, kMostInputs = 8 * 4096;
// A product is to be this near to the copy, and a launch behind it.
constexpr double kShare = 0.6, kLaunchUs = 3;

std::int64_t bytes_of(const Shape& s) {
  const std::int64_t values = s.rows * s.columns;
  return s.type == WeightType::kBf16  ? values * 2
         : s.type == WeightType::kFp8 ? values
                                      : values / 2;
}

void run_shape(Bench& bench, const Shape& s) {
  const std::int64_t bytes = bytes_of(s);
  // More than the second-level cache holds, or the weights would come out of it.
  const int sets = static_cast<int>(std::clamp<std::int64_t>((160 << 20) / bytes + 1, 1, 40));
  Memory w(static_cast<std::size_t>(bytes * sets)), x(kMostTokens * kMostInputs * 2);
  Memory scales(static_cast<std::size_t>(s.rows * s.columns / 32)), x_scales(kMostInputs * 4);
  Memory y(static_cast<std::size_t>(kMostTokens * s.rows * 4));
  if (s.type == WeightType::kBf16) {
    w.fill_bf16(1);
  } else {
    w.fill_e4m3(1);
  }
  if (s.groups > 0) {
    x.fill_e4m3(2);
  } else {
    x.fill_bf16(2);
  }
  const std::vector<std::uint8_t> small(scales.bytes(), 120);
  scales.copy_from(small.data(), small.size());
  const std::vector<float> halves(x_scales.bytes() / 4, 0.5F);
  x_scales.copy_from(halves.data(), x_scales.bytes());
  for (const std::int64_t tokens : kTokens) {
    const auto call = [&](int set) {
      const cpu::Weights weights{s.type, w.as<char>() + bytes * set, scales.as<cpu::Ue8m0>(),
                                 s.rows, s.columns};
      if (s.groups > 0) {
        cuda::run(cpu::GroupedProjection{tokens, s.groups, s.rows / s.groups, s.columns,
                                         x.as<cpu::E4m3>(), x_scales.as<float>(), weights,
                                         y.as<cpu::Bf16>()},
                  bench.launch());
      } else {
        cuda::run(cpu::Gemm{tokens, x.as<cpu::Bf16>(), weights, s.out, y.as<void>()},
                  bench.launch());
      }
    };
    Result out;
    out.name = fmt::format("gemm {}, {} tokens", s.name, tokens);
    out.time = bench.time(sets, call);
    out.bytes = static_cast<double>(bytes);
    out.flops = 2.0 * static_cast<double>(tokens * s.rows * s.columns);
    if (bench.ceilings.copy_gb_s > 0)
      out.must_us = out.bytes / (kShare * bench.ceilings.copy_gb_s) * 1e-3 + kLaunchUs;
    bench.add(out);
  }
}

void few_tokens(Bench& bench) {
  for (const Shape& s : kShapes) run_shape(bench, s);
}

}  // namespace

std::vector<Case> gemm_cases() { return {{"gemm", few_tokens}}; }

}  // namespace warmgate::bench
