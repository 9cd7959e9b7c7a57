// Projections from every weight type, and norms.
#include <fmt/format.h>

#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/weights.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

// fp32 results carry no bf16 rounding, so they are held to more.
constexpr double kFp32Limit = 1e-5;
constexpr std::int64_t kTokens[] = {0, 1, 3, 4, 5, 17};

struct Weight {
  std::vector<std::uint8_t> data, scales;
  cpu::Weights op;
  ref::Matrix oracle;
};

Weight weight(Random& random, cpu::WeightType type, std::int64_t rows, std::int64_t cols) {
  Weight w;
  const auto bytes = [&](const auto& values) {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(values.data());
    w.data.assign(raw, raw + values.size() * sizeof(values[0]));
  };
  const auto stored = [&] { return std::as_bytes(std::span(w.data)); };
  const auto scales = [&] { return std::as_bytes(std::span(w.scales)); };
  const auto up = [](std::int64_t n, std::int64_t d) { return (n + d - 1) / d; };
  switch (type) {
    case cpu::WeightType::kBf16:
      bytes(random.bf16(rows * cols));
      w.oracle = ref::weight_bf16(stored(), rows, cols);
      break;
    case cpu::WeightType::kFp32:
      bytes(random.fp32(rows * cols));
      w.oracle = ref::weight_fp32(stored(), rows, cols);
      break;
    case cpu::WeightType::kFp8:
      w.data = random.e4m3(rows * cols);
      w.scales = random.scales(up(rows, 128) * up(cols, 128), -6, 2);
      w.oracle = ref::weight_fp8(stored(), scales(), rows, cols);
      break;
    case cpu::WeightType::kFp4:
      for (std::int64_t i = 0; i < rows * cols / 2; ++i) {
        w.data.push_back(static_cast<std::uint8_t>(random.integer(0, 255)));
      }
      w.scales = random.scales(rows * up(cols, 32), -6, 2);
      w.oracle = ref::weight_mxfp4(stored(), scales(), rows, cols);
      break;
  }
  w.op = {type, w.data.data(), w.scales.empty() ? nullptr : w.scales.data(), rows, cols};
  return w;
}

template <typename T>
void product(Random& random, Table& table, cpu::WeightType type, cpu::OutputType out_type,
             const char* name, std::int64_t rows, std::int64_t cols, std::int64_t gap) {
  const Weight w = weight(random, type, rows, cols);
  double worst = 0;
  std::int64_t poisoned = 0;
  for (const std::int64_t tokens : kTokens) {
    // Gaps between rows of x hold NaN: reading one shows.
    std::vector<Bf16> x(static_cast<std::size_t>(tokens * (cols + gap)), Bf16{0xFFFF});
    ref::Matrix in(tokens, cols);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto row = random.bf16(cols);
      std::copy(row.begin(), row.end(), x.begin() + t * (cols + gap));
      in.set_row(t, from_bf16(row));
    }
    Output<T> y(tokens * (rows + gap));
    cpu::Gemm p{tokens, x.data(), w.op, out_type, y.data(), 0, 0};
    if (gap != 0) {
      p.x_stride = cols + gap;
      p.y_stride = rows + gap;
    }
    device()->gemm(p);
    ref::Matrix got(tokens, rows);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t at = t * (rows + gap);
      const auto row =
          y.view().subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rows));
      if constexpr (sizeof(T) == 2) {
        got.set_row(t, from_bf16(row));
      } else {
        got.set_row(t, from_fp32(row));
      }
      poisoned += y.unwritten(at, rows) + y.written(at + rows, gap);
    }
    worst = std::max(worst, ref::worst_row(got, ref::project(in, w.oracle)).error);
    poisoned += y.overrun();
  }
  const std::string inputs = "T 0,1,3,4,5,17, " + std::to_string(rows) + "x" +
                             std::to_string(cols) + (gap != 0 ? ", rows apart" : "");
  table.error(name, inputs, worst, poisoned,
              out_type == cpu::OutputType::kFp32 ? kFp32Limit : ref::kRowLimit);
}

void projections(Random& random, Table& table) {
  using W = cpu::WeightType;
  using O = cpu::OutputType;
  product<Bf16>(random, table, W::kFp8, O::kBf16, "projection, fp8 blocks", 130, 200, 0);
  product<Bf16>(random, table, W::kFp8, O::kBf16, "projection, fp8 blocks", 256, 128, 8);
  product<float>(random, table, W::kFp8, O::kFp32, "projection, fp8 -> fp32", 129, 257, 3);
  product<Bf16>(random, table, W::kBf16, O::kBf16, "projection, bf16", 67, 129, 0);
  product<float>(random, table, W::kBf16, O::kFp32, "projection, bf16 -> fp32", 64, 512, 0);
  product<Bf16>(random, table, W::kFp32, O::kBf16, "projection, fp32", 5, 7, 1);
  product<Bf16>(random, table, W::kFp4, O::kBf16, "projection, fp4 runs", 33, 160, 0);
}

// A token's result does not depend on which tokens are computed with it.
void projection_alone(Random& random, Table& table) {
  const std::int64_t tokens = 21, rows = 130, cols = 264;
  for (const auto type : {cpu::WeightType::kFp8, cpu::WeightType::kBf16}) {
    const Weight w = weight(random, type, rows, cols);
    const auto x = random.bf16(tokens * cols);
    Output<float> all(tokens * rows);
    device()->gemm({tokens, x.data(), w.op, cpu::OutputType::kFp32, all.data(), 0, 0});
    std::vector<float> alone;
    for (std::int64_t t = 0; t < tokens; ++t) {
      Output<float> one(rows);
      device()->gemm({1, x.data() + t * cols, w.op, cpu::OutputType::kFp32, one.data(), 0, 0});
      for (const float value : one.view()) alone.push_back(value);
    }
    same_sums(table, "projection: alone = in a batch",
              type == cpu::WeightType::kFp8 ? "fp8, T 21" : "bf16, T 21", alone, all.copy(), rows);
  }
}

// Where rows are as small as sqrt(eps), eps decides; a row of zeros gives zeros.
const double kNormScales[] = {1, 100, 1e-3, 1e-4};

void norms(Random& random, Table& table) {
  const std::int64_t width = 200;
  for (const double scale : kNormScales) {
    double worst = 0;
    std::int64_t poisoned = 0, in_place = 0;
    for (const std::int64_t tokens : kTokens) {
      auto x = random.bf16(tokens * width, scale);
      if (tokens > 3) std::fill(x.begin(), x.begin() + width, Bf16{0});
      const auto weight = random.bf16(width);
      Output<Bf16> y(tokens * width);
      device()->rms_norm({tokens, width, x.data(), weight.data(), y.data(), 1e-6F, 0, 0});
      ref::Matrix want(tokens, width);
      const ref::Matrix in = rows_bf16(x, width);
      for (std::int64_t t = 0; t < tokens; ++t) {
        want.set_row(t, ref::rms_norm(in.row(t), from_bf16(weight), 1e-6));
      }
      worst = std::max(worst, ref::worst_row(rows_bf16(y.view(), width), want).error);
      poisoned += y.unwritten(0, tokens * width) + y.overrun();
      device()->rms_norm({tokens, width, x.data(), weight.data(), x.data(), 1e-6F, 0, 0});
      in_place += differing(x, y.copy());
    }
    const std::string inputs = "T 0,1,3,4,5,17, width 200, size " + fmt::format("{:g}", scale);
    table.error("RMSNorm", inputs, worst, poisoned);
    table.exact("RMSNorm in place", inputs, in_place);
  }
}

void joint_norm(Random& random, Table& table) {
  const std::int64_t q = 128, kv = 512;
  double worst_q = 0, worst_kv = 0;
  std::int64_t poisoned = 0;
  for (const std::int64_t tokens : kTokens) {
    const auto qkv = random.bf16(tokens * (q + kv), tokens == 4 ? 1e-3 : 1);
    const auto q_norm = random.bf16(q), kv_norm = random.bf16(kv);
    Output<Bf16> qr(tokens * q), k(tokens * kv);
    device()->fused_qkv_norm(
        {tokens, q, kv, qkv.data(), q_norm.data(), kv_norm.data(), qr.data(), k.data(), 1e-6F});
    const ref::Matrix in = rows_bf16(qkv, q + kv);
    ref::Matrix want_q(tokens, q), want_kv(tokens, kv);
    for (std::int64_t t = 0; t < tokens; ++t) {
      want_q.set_row(t, ref::rms_norm(in.row(t).first(128), from_bf16(q_norm), 1e-6));
      want_kv.set_row(t, ref::rms_norm(in.row(t).subspan(128), from_bf16(kv_norm), 1e-6));
    }
    worst_q = std::max(worst_q, ref::worst_row(rows_bf16(qr.view(), q), want_q).error);
    worst_kv = std::max(worst_kv, ref::worst_row(rows_bf16(k.view(), kv), want_kv).error);
    poisoned +=
        qr.unwritten(0, tokens * q) + k.unwritten(0, tokens * kv) + qr.overrun() + k.overrun();
  }
  table.error("q_norm of the joint projection", "T 0,1,3,4,5,17, 128 of 640", worst_q, poisoned);
  table.error("kv_norm of the joint projection", "T 0,1,3,4,5,17, 512 of 640", worst_kv);
}

}  // namespace

std::vector<Case> linear_cases() {
  return {{"projections", projections},
          {"projection_alone_equals_batched", projection_alone},
          {"rms_norm", norms},
          {"joint_qkv_norm", joint_norm}};
}

}  // namespace warmgate::numerics
