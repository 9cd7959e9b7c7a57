// Output projection: inverse rotation, e4m3 per 128, groups, wo_b, the sum over ranks.
#include "kernels/cpu/output_projection.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/cpu/decoder.h"
#include "kernels/cpu/gemm.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/rope_tables.h"
#include "kernels/reference/number.h"
#include "kernels/reference/output.h"
#include "kernels/reference/quantise.h"
#include "kernels/reference/weights.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

constexpr std::int64_t kGroups = 2, kHeads = 4, kPadded = 6, kInputs = 1024, kRank = 72,
                       kHidden = 96;

struct Weight {
  Weight(Random& random, std::int64_t rows, std::int64_t cols)
      : data(random.e4m3(rows * cols)),
        scales(random.scales((rows + 127) / 128 * ((cols + 127) / 128), -8, -5)),
        op{cpu::WeightType::kFp8, data.data(), scales.data(), rows, cols},
        oracle(ref::weight_fp8(bytes_of(data), bytes_of(scales), rows, cols)) {}
  std::vector<std::uint8_t> data, scales;
  cpu::Weights op;
  ref::Matrix oracle;
};

void projection(Random& random, Table& table, double size) {
  const std::vector<std::int64_t> positions{0, 1, 3, 4, 5, 63, 127, 128, 4095};
  const auto tokens = static_cast<std::int64_t>(positions.size());
  const ref::Rope rope = ref::rope_of_layer(4, ref::WindowRope::yarn);
  const auto rows = rope_table(rope, 4096);
  // Padding heads hold NaN: nobody may read them.
  std::vector<Bf16> o(static_cast<std::size_t>(tokens * kPadded * 512), Bf16{0xFFFF});
  ref::Matrix heads(tokens, kHeads * 512);
  for (std::int64_t t = 0; t < tokens; ++t) {
    auto row = random.bf16(kHeads * 512, size);
    if (t == 2) std::fill(row.begin(), row.begin() + 128, Bf16{0});  // one run of zeros
    std::copy(row.begin(), row.end(), o.begin() + t * kPadded * 512);
    heads.set_row(t, from_bf16(row));
  }
  const std::int64_t runs = kInputs / 128;
  Output<std::uint8_t> q(tokens * kGroups * kInputs, 0xFF);
  Output<float> scales(tokens * kGroups * runs);
  device()->inverse_rope_quant({tokens, kPadded, kGroups, kInputs, o.data(), rows.data(),
                                positions.data(), q.data(), scales.data()});
  double operand = 0;
  std::int64_t not_powers = 0;
  ref::Matrix stored(tokens, kGroups * kInputs);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t p = positions[static_cast<std::size_t>(t)];
    const ref::Vector exact = ref::unrotate_heads(heads.row(t), 512, rope, p);
    ref::Vector got, want;
    for (std::int64_t run = 0; run < kGroups * runs; ++run) {
      const double scale = static_cast<double>(scales[t * kGroups * runs + run]);
      const int exponent = std::ilogb(scale);
      not_powers += scale == std::pow(2.0, exponent) ? 0 : 1;
      ref::Vector codes;
      for (std::int64_t i = 0; i < 128; ++i) {
        codes.push_back(ref::e4m3_value(q[t * kGroups * kInputs + run * 128 + i]));
        got.push_back(codes.back() * scale);
      }
      const ref::View part = ref::View(exact).subspan(static_cast<std::size_t>(run * 128), 128);
      const ref::Vector right = ref::expected_e4m3(part, codes, exponent, 1e-10,
                                                   ref::kSlack * ref::largest(exact), false);
      want.insert(want.end(), right.begin(), right.end());
    }
    operand = std::max(operand, ref::row_error(got, want));
    stored.set_row(t, got);
  }
  const std::string inputs = "9 positions to 4095, 4 of 6 heads, size " + fmt::format("{:g}", size);
  table.error("output operand: inverse RoPE, e4m3", inputs, operand,
              q.unwritten(0, tokens * kGroups * kInputs) + q.overrun() + scales.overrun(),
              kStoredLimit);
  table.exact("output operand: scales", inputs, not_powers);

  const Weight wo_a(random, kGroups * kRank, kInputs), wo_b(random, kHidden, kGroups * kRank);
  Output<Bf16> z(tokens * kGroups * kRank), y(tokens * kHidden);
  device()->grouped_projection(
      {tokens, kGroups, kRank, kInputs, q.data(), scales.data(), wo_a.op, z.data()});
  device()->gemm({tokens, z.data(), wo_b.op, cpu::OutputType::kBf16, y.data(), 0, 0});
  ref::Matrix want_z(tokens, kGroups * kRank), want_y(tokens, kHidden);
  for (std::int64_t t = 0; t < tokens; ++t) {
    want_z.set_row(t, ref::grouped_project(stored.row(t), wo_a.oracle, kGroups));
    want_y.set_row(t, ref::output_project(want_z.row(t), wo_b.oracle));
  }
  table.error("grouped projection wo_a", "2 groups of 72 x 1024, stored operand",
              ref::worst_row(rows_bf16(z.view(), kGroups * kRank), want_z).error,
              z.unwritten(0, tokens * kGroups * kRank) + z.overrun());
  table.error("output projection wo_a, wo_b", "from the stored operand to y",
              ref::worst_row(rows_bf16(y.view(), kHidden), want_y).error, y.overrun());
}

void output(Random& random, Table& table) {
  projection(random, table, 1);
  projection(random, table, 1e-9);  // near the floor of the scale
}

void whole_operand_by_formula(Random& random, Table& table) {
  // The oracle's own operand, not the benefit of the doubt: what rounding edges cost in all.
  const ref::Rope rope = ref::rope_of_layer(1, ref::WindowRope::yarn);
  const auto rows = rope_table(rope, 300);
  const auto o = random.bf16(1024);
  const std::int64_t position = random.integer(0, 299);
  const std::vector<std::int64_t> positions{position};
  Output<std::uint8_t> q(1024, 0xFF);
  Output<float> scales(8);
  device()->inverse_rope_quant(
      {1, 2, 1, 1024, o.data(), rows.data(), positions.data(), q.data(), scales.data()});
  const ref::Vector want = ref::output_operand(from_bf16(o), 512, rope, position);
  ref::Vector got;
  for (std::int64_t i = 0; i < 1024; ++i) {
    got.push_back(ref::e4m3_value(q[i]) * static_cast<double>(scales[i / 128]));
  }
  // A code on the other side of an edge is worth up to an eighth of its value.
  std::int64_t flips = 0;
  for (std::size_t i = 0; i < got.size(); ++i) flips += got[i] == want[i] ? 0 : 1;
  table.exact("output operand: codes beside the oracle's", "1024 values", flips > 10 ? flips : 0);
}

void over_ranks(Random& random, Table& table) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    const std::int64_t elements = 333;
    std::vector<std::vector<Bf16>> terms;
    std::vector<const Bf16*> pointers;
    std::vector<ref::Vector> partial;
    for (std::int64_t r = 0; r < ranks; ++r) terms.push_back(random.bf16(elements));
    for (const auto& term : terms) {
      pointers.push_back(term.data());
      partial.push_back(from_bf16(term));
    }
    Output<Bf16> sum(elements);
    cpu::sum_bf16(elements, ranks, pointers.data(), sum.data());
    table.error("sum over ranks", std::to_string(ranks) + " ranks, 333 elements",
                ref::row_error(from_bf16(sum.view()), ref::sum_over_ranks(partial)), sum.overrun());
  }
}

}  // namespace

std::vector<Case> output_cases() {
  return {{"output_projection", output},
          {"output_operand_by_formula", whole_operand_by_formula},
          {"sum_over_ranks", over_ranks, true}};
}

}  // namespace warmgate::numerics
