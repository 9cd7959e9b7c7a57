// The indexer: quantised queries, weights, scores over gathered keys and straight from pages.
#include "kernels/cpu/indexer.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/paged.h"
#include "kernels/numerics/rope_tables.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/number.h"
#include "kernels/reference/visible.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

constexpr std::int64_t kHeads = 8;

// What the codes of a stored query stand for, head by head, without (fp8) or with (fp4) scales.
ref::Vector stored_query(const Output<std::uint8_t>& q, const Output<std::uint8_t>& scales,
                         std::int64_t t, bool fp4) {
  ref::Vector out;
  for (std::int64_t i = 0; i < kHeads * 128; ++i) {
    if (!fp4) {
      out.push_back(ref::e4m3_value(q[t * kHeads * 128 + i]));
      continue;
    }
    const int pair = q[t * kHeads * 64 + i / 2];
    const auto nibble = static_cast<std::uint8_t>(i % 2 == 0 ? pair % 16 : pair / 16);
    out.push_back(ref::e2m1_value(nibble) * ref::ue8m0_value(scales[(t * kHeads * 128 + i) / 32]));
  }
  return out;
}

void queries(Random& random, Table& table) {
  for (const bool fp4 : {false, true}) {
    for (const double size : {1.0, 1e-5}) {
      const std::vector<std::int64_t> positions{0, 1, 3, 4, 5, 63, 64, 129, 4095};
      const auto tokens = static_cast<std::int64_t>(positions.size());
      const ref::Rope rope = ref::rope_of_layer(4, ref::WindowRope::yarn);
      const auto rows = rope_table(rope, 4096);
      const auto iq = random.bf16(tokens * kHeads * 128, size);
      const auto weights = random.bf16(tokens * kHeads);
      Output<std::uint8_t> q(tokens * kHeads * (fp4 ? 64 : 128), 0xFF);
      Output<std::uint8_t> scales(tokens * kHeads * 4, 0xFF);
      Output<float> w(tokens * kHeads);
      device()->indexer_quant({tokens, kHeads,
                               fp4 ? cpu::IndexFormat::kMxfp4 : cpu::IndexFormat::kFp8, iq.data(),
                               weights.data(), rows.data(), positions.data(), q.data(),
                               fp4 ? scales.data() : nullptr, w.data()});
      double worst = 0, worst_weight = 0;
      std::int64_t poisoned = q.overrun() + w.overrun() + scales.overrun();
      const ref::Vector in = from_bf16(iq);
      for (std::int64_t t = 0; t < tokens; ++t) {
        const ref::Vector query = stored_query(q, scales, t, fp4);
        ref::Vector query_scales;
        for (std::int64_t h = 0; h < kHeads; ++h) {
          const auto first = static_cast<std::size_t>((t * kHeads + h) * 128);
          const ref::Vector exact = ref::rotate(ref::View(in).subspan(first, 128), rope,
                                                positions[static_cast<std::size_t>(t)]);
          const ref::View codes = ref::View(query).subspan(static_cast<std::size_t>(h * 128), 128);
          const double slack = ref::kSlack * ref::largest(exact);
          if (fp4) {
            query_scales.push_back(1);
            for (std::size_t run = 0; run < 4; ++run) {
              const ref::View part = ref::View(exact).subspan(32 * run, 32);
              const int exponent =
                  scales[(t * kHeads + h) * 4 + static_cast<std::int64_t>(run)] - 127;
              ref::Vector unscaled;
              for (const double v : codes.subspan(32 * run, 32))
                unscaled.push_back(v / std::pow(2.0, exponent));
              worst = std::max(
                  worst, ref::row_error(codes.subspan(32 * run, 32),
                                        ref::expected_e2m1(part, unscaled, exponent, slack, true)));
            }
            continue;
          }
          // The fp8 query keeps no scale of its own: it is in the weight, so read it from there.
          const int exponent = ref::quantise_e4m3(ref::bf16(exact), 1e-4).exponent;
          query_scales.push_back(std::pow(2.0, exponent));
          ref::Vector got, want = ref::expected_e4m3(exact, codes, exponent, 1e-4, slack, true);
          for (const double v : codes) got.push_back(v * std::pow(2.0, exponent));
          worst = std::max(worst, ref::row_error(got, want));
        }
        const ref::Vector want = ref::indexer_weights(
            from_bf16(std::span(weights).subspan(static_cast<std::size_t>(t * kHeads), kHeads)),
            128, query_scales);
        worst_weight = std::max(
            worst_weight,
            ref::row_error(
                from_fp32(w.view().subspan(static_cast<std::size_t>(t * kHeads), kHeads)), want));
      }
      const std::string inputs =
          std::string(fp4 ? "MXFP4" : "fp8") + ", p 0..4095, size " + fmt::format("{:g}", size);
      table.error("indexer query: RoPE, quantised", inputs, worst, poisoned, kStoredLimit);
      table.error("indexer weights", inputs, worst_weight, 0, 1e-6);
    }
  }
}

// Requests whose tokens see 0, 1, … entries; keys through pages and gathered, the same bits.
void scores(Random& random, Table& table) {
  const std::vector<std::int64_t> lengths{3, 4, 9, 255, 256, 257, 520};
  const std::int64_t next_n = 3;
  for (const bool fp4 : {false, true}) {
    const auto format = fp4 ? cpu::IndexFormat::kMxfp4 : cpu::IndexFormat::kFp8;
    std::vector<std::int64_t> kept;
    for (const std::int64_t l : lengths) kept.push_back(l / 4 + 1);
    Cache cache = Cache::indexer(random, kept, fp4);
    std::vector<std::int32_t> seq, starts, ends, seen;
    std::vector<std::int64_t> positions;
    std::int64_t keys = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      for (std::int64_t j = 0; j < lengths[r] / 4; ++j) {
        cache.put_indexer(static_cast<std::int64_t>(r), j, from_bf16(random.bf16(128)), fp4);
      }
      for (std::int64_t i = 0; i < next_n; ++i) {
        const std::int64_t p = lengths[r] - next_n + i;
        const auto visible = static_cast<std::int32_t>(ref::visible_entries(p, 4).size());
        positions.push_back(p);
        starts.push_back(static_cast<std::int32_t>(keys));
        ends.push_back(static_cast<std::int32_t>(keys) + visible);
        seen.push_back(visible);
      }
      seq.push_back(static_cast<std::int32_t>(lengths[r]));
      keys += lengths[r] / 4;
    }
    const auto tokens = static_cast<std::int64_t>(positions.size());
    Output<std::uint8_t> values(keys * (fp4 ? 64 : 128), 0xFF), key_scales(keys * 4, 0xFF);
    device()->gather_indexer_keys({static_cast<std::int64_t>(lengths.size()), 4, format, seq.data(),
                                   cache.op(), cache.op_table(), values.data(), key_scales.data()});
    // Any quantised queries: what wrote them is another step.
    const std::int64_t q_bytes = tokens * kHeads * (fp4 ? 64 : 128);
    Output<std::uint8_t> q(q_bytes, 0), q_scales(tokens * kHeads * 4, 127);
    const auto codes = random.e4m3(q_bytes);
    std::copy(codes.begin(), codes.end(), q.data());
    for (std::int64_t i = 0; i < tokens * kHeads * 4; ++i) {
      q_scales.data()[i] = static_cast<std::uint8_t>(random.integer(120, 130));
    }
    const auto w = random.fp32(tokens * kHeads);
    const std::int64_t stride = keys + 5;
    Output<float> gathered(tokens * stride), paged(tokens * stride);
    device()->mqa_logits_prefill({tokens, kHeads, format, q.data(), q_scales.data(), w.data(),
                                  values.data(), key_scales.data(), starts.data(), ends.data(),
                                  gathered.data(), stride});
    device()->mqa_logits_paged({tokens, kHeads, next_n, format, q.data(), q_scales.data(), w.data(),
                                cache.op(), cache.op_table(), seen.data(), paged.data(), stride});
    double worst = 0;
    std::int64_t poisoned = gathered.overrun() + paged.overrun();
    std::vector<float> from_keys, from_pages;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto i = static_cast<std::size_t>(t);
      const std::int64_t count = seen[i], request = t / next_n;
      ref::Matrix own(count, 128);
      for (std::int64_t j = 0; j < count; ++j) {
        const ref::Place at = ref::place(cache.table(request), 64, j);
        const ref::Bytes page = cache.pages().page(at.block);
        own.set_row(j, fp4 ? ref::decode_indexer_fp4(ref::indexer_row_fp4(page, 64, at.row))
                           : ref::decode_indexer_row(page, 64, at.row));
      }
      const ref::Vector want = ref::indexer_scores(
          stored_query(q, q_scales, t, fp4), own,
          from_fp32(std::span(w).subspan(static_cast<std::size_t>(t * kHeads), kHeads)));
      const auto row = gathered.view().subspan(static_cast<std::size_t>(t * stride + starts[i]),
                                               static_cast<std::size_t>(count));
      worst = std::max(worst, ref::row_error(from_fp32(row), want));
      for (std::int64_t j = 0; j < count; ++j) {
        from_keys.push_back(row[static_cast<std::size_t>(j)]);
        from_pages.push_back(paged[t * stride + j]);
      }
      poisoned += gathered.written(t * stride, starts[i]) +
                  gathered.written(t * stride + ends[i], stride - ends[i]) +
                  paged.written(t * stride + count, stride - count);
    }
    const std::string inputs = std::string(fp4 ? "MXFP4" : "fp8") + ", seq 3,4,9,255,256,257,520";
    table.error("indexer scores", inputs, worst, poisoned);
    same_sums(table, "indexer scores: paged = gathered", inputs, from_pages, from_keys,
              static_cast<std::int64_t>(from_keys.size()));
  }
}

}  // namespace

std::vector<Case> indexer_cases() {
  return {{"indexer_queries", queries}, {"indexer_scores", scores}};
}

}  // namespace warmgate::numerics
