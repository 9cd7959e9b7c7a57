// Around attention: embedding, residual copies, gated MLP, selection, greedy choice.
#include "kernels/cpu/decoder.h"
#include "kernels/cpu/gemm.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/reference/layer.h"
#include "kernels/reference/number.h"
#include "kernels/reference/weights.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

void embedding(Random& random, Table& table) {
  const std::int64_t width = 40, rows = 16, first = 32;
  const auto weights = random.bf16(rows * width);
  const std::vector<std::int64_t> ids{31, 32, 33, 47, 48, 0, 40};
  const auto tokens = static_cast<std::int64_t>(ids.size());
  Output<Bf16> out(tokens * width);
  device()->embed({tokens, width, rows, first, ids.data(), weights.data(), out.data()});
  std::int64_t differ = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t row = ids[static_cast<std::size_t>(t)] - first;
    for (std::int64_t i = 0; i < width; ++i) {
      const Bf16 want =
          row >= 0 && row < rows ? weights[static_cast<std::size_t>(row * width + i)] : Bf16{0};
      differ += out[t * width + i] == want ? 0 : 1;
    }
  }
  table.exact("embedding, one rank's rows", "ids at both edges of the shard", differ,
              out.overrun());
}

void copies(Random& random, Table& table) {
  const cpu::Copies shape{5, 4, 33};
  const auto x = random.bf16(5 * 33), y = random.bf16(5 * 33);
  Output<Bf16> residual(5 * 4 * 33), back(5 * 33), mean(5 * 33);
  device()->spread_copies(shape, x.data(), residual.data());
  std::int64_t differ = residual.overrun();
  for (std::int64_t i = 0; i < 5 * 4 * 33; ++i) {
    differ += residual[i] == x[static_cast<std::size_t>(i / 132 * 33 + i % 33)] ? 0 : 1;
  }
  device()->first_copy(shape, residual.data(), back.data());
  differ += differing(back.copy(), x);
  device()->add_to_copies(shape, y.data(), residual.data());
  // One addition, one rounding.
  const ref::Vector sum = ref::bf16(ref::add(from_bf16(x), from_bf16(y)));
  for (std::int64_t i = 0; i < 5 * 4 * 33; ++i) {
    differ += ref::bf16_value(residual[i]) == sum[static_cast<std::size_t>(i / 132 * 33 + i % 33)]
                  ? 0
                  : 1;
  }
  device()->mean_of_copies(shape, residual.data(), mean.data());
  differ += differing(from_bf16(mean.view()), sum);
  table.exact("residual copies: spread, add, mean", "T 5, 4 copies, width 33", differ,
              residual.overrun() + back.overrun() + mean.overrun());
}

void gated(Random& random, Table& table) {
  const std::int64_t hidden = 256, inter = 328;
  struct {
    double size;
    float limit;
    const char* name;
  } const variants[] = {{1, 0, "T 0,1,3,5, no limit"},
                        {1, 10, "T 0,1,3,5, limit 10"},
                        {40, 10, "T 0,1,3,5, limit 10 reached"}};
  for (const auto& v : variants) {
    const auto w13 = random.bf16(2 * inter * hidden, 0.1), w2 = random.bf16(hidden * inter, 0.1);
    const ref::Matrix up = ref::weight_bf16(bytes_of(w13), 2 * inter, hidden);
    const ref::Matrix down = ref::weight_bf16(bytes_of(w2), hidden, inter);
    double worst = 0;
    std::int64_t poisoned = 0;
    for (const std::int64_t tokens : {0, 1, 3, 5}) {
      const auto x = random.bf16(tokens * hidden, v.size);
      Output<Bf16> y(tokens * hidden);
      device()->gated_mlp({tokens,
                           x.data(),
                           {cpu::WeightType::kBf16, w13.data(), nullptr, 2 * inter, hidden},
                           {cpu::WeightType::kBf16, w2.data(), nullptr, hidden, inter},
                           y.data(),
                           v.limit});
      ref::Matrix want(tokens, hidden);
      const ref::Matrix in = rows_bf16(x, hidden);
      for (std::int64_t t = 0; t < tokens; ++t) {
        want.set_row(t, ref::gated_mlp(in.row(t), up, down, static_cast<double>(v.limit)));
      }
      worst = std::max(worst, ref::worst_row(rows_bf16(y.view(), hidden), want).error);
      poisoned += y.unwritten(0, tokens * hidden) + y.overrun();
    }
    table.error("gated MLP", v.name, worst, poisoned);
  }
}

void choice(Random& random, Table& table) {
  const std::int64_t tokens = 6, width = 300, stride = 310, first = 600;
  auto logits = random.fp32(tokens * stride);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = width; i < stride; ++i)
      logits[static_cast<std::size_t>(t * stride + i)] = 1e30F;
  }
  // Ties go to the lower column, also at the edges.
  for (const std::int64_t i : {299, 0, 150}) logits[static_cast<std::size_t>(i)] = 77;
  for (const std::int64_t i : {298, 299}) logits[static_cast<std::size_t>(stride + i)] = 77;
  Output<std::int64_t> ids(tokens);
  Output<float> best(tokens);
  device()->argmax({tokens, width, stride, first, logits.data(), ids.data(), best.data()});
  std::int64_t differ = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto row =
        from_fp32(std::span(logits).subspan(static_cast<std::size_t>(t * stride), 300));
    const std::int64_t want = ref::argmax(row);
    differ += ids[t] == first + want ? 0 : 1;
    differ += static_cast<double>(best[t]) == row[static_cast<std::size_t>(want)] ? 0 : 1;
  }
  table.exact("greedy choice", "T 6, 300 of 310 columns, ties", differ,
              ids.overrun() + best.overrun());

  const auto x = random.bf16(9 * 17);
  const std::vector<std::int64_t> rows{8, 0, 3, 3};
  Output<Bf16> out(4 * 17);
  device()->select_rows(4, 17, rows.data(), x.data(), out.data());
  std::int64_t moved = 0;
  for (std::int64_t i = 0; i < 4 * 17; ++i) {
    moved +=
        out[i] == x[static_cast<std::size_t>(rows[static_cast<std::size_t>(i / 17)] * 17 + i % 17)]
            ? 0
            : 1;
  }
  table.exact("rows selected for the head", "4 of 9 rows", moved, out.overrun());
}

}  // namespace

std::vector<Case> layer_cases() {
  return {{"embedding", embedding},
          {"residual_copies", copies},
          {"gated_mlp", gated},
          {"greedy_choice", choice}};
}

}  // namespace warmgate::numerics
