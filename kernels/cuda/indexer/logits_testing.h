// Scores judged by the float64 oracle of the quantised inputs.
#pragma once

#include "kernels/cuda/indexer/testing.h"
#include "kernels/reference/compare.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/number.h"

namespace warmgate::kernels::cuda {

class LogitsTest : public IndexerTest {
 protected:
  struct Queries {
    std::vector<std::uint8_t> q, scales;
    std::vector<float> w;
  };
  Queries queries(cpu::IndexFormat format, std::int64_t tokens, std::int64_t heads) {
    Queries out;
    const std::int64_t bytes = cpu::index_value_bytes(format);
    out.q.resize(static_cast<std::size_t>(tokens * heads * bytes));
    out.scales.assign(static_cast<std::size_t>(tokens * heads * 4), 0xFF);
    for (std::int64_t r = 0; r < tokens * heads; ++r) {
      const auto x = floats(128);
      std::uint8_t scale[4];
      cpu::encode_index_row(format, x.data(), out.q.data() + r * bytes, scale);
      if (format == cpu::IndexFormat::kMxfp4) std::memcpy(out.scales.data() + r * 4, scale, 4);
    }
    out.w = floats(tokens * heads);
    return out;
  }
  // Worst row error; exact about what must not be written. key(t, j): the channels of column j.
  template <class Key>
  double judge(const Queries& in, cpu::IndexFormat format, std::int64_t tokens, std::int64_t heads,
               const std::vector<std::int32_t>& start, const std::vector<std::int32_t>& end,
               const std::vector<float>& logits, std::int64_t stride, const Key& key) {
    double worst = 0;
    const std::int64_t bytes = cpu::index_value_bytes(format);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      reference::Vector query, weights, sizes, got;
      float x[128];
      for (std::int64_t r = t * heads; r < (t + 1) * heads; ++r) {
        const float one = 1;
        std::uint8_t scale[4];
        std::memcpy(scale,
                    format == cpu::IndexFormat::kFp8 ? static_cast<const void*>(&one)
                                                     : in.scales.data() + r * 4,
                    4);
        cpu::decode_index_row(format, in.q.data() + r * bytes, scale, x);
        query.insert(query.end(), x, x + 128);
        weights.push_back(in.w[static_cast<std::size_t>(r)]);
        sizes.push_back(std::abs(weights.back()));
      }
      const std::int64_t n = std::max(end[at] - start[at], 0);
      reference::Matrix keys(n, 128);
      for (std::int64_t j = 0; j < n; ++j) {
        key(t, start[at] + j, x);
        keys.set_row(j, reference::Vector(x, x + 128));
      }
      for (std::int64_t j = 0; j < stride; ++j) {
        const float value = logits[static_cast<std::size_t>(t * stride + j)];
        const bool inside = j >= start[at] && j < end[at];
        std::uint32_t bits;
        std::memcpy(&bits, &value, 4);
        if (inside) {
          got.push_back(value);
        } else {
          EXPECT_EQ(bits, 0xFFFFFFFFu) << "written: token " << t << " column " << j;
        }
        if (HasFailure()) return 1;
      }
      const reference::Vector want = reference::indexer_scores(query, keys, weights);
      const reference::Vector magnitude = reference::indexer_scores(query, keys, sizes);
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        difference += std::pow(got[i] - want[i], 2);
        norm += std::pow(magnitude[i], 2);
        all_difference_ += std::pow(got[i] - want[i], 2);
        all_norm_ += std::pow(want[i], 2);
      }
      const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
      if (!(error <= worst)) worst = error;  // NaN too
    }
    return worst;
  }
  // ‖out − oracle‖ / ‖oracle‖ over all that was judged.
  double overall() const { return std::sqrt(all_difference_ / all_norm_); }
  double all_difference_ = 0, all_norm_ = 0;

  // Lengths around tiles of 64.
  std::int32_t length(std::int64_t most) {
    static constexpr std::int32_t kEdges[] = {0, 1, 63, 64, 65, 127, 128, 129};
    const std::int32_t n =
        below(3) == 0 ? static_cast<std::int32_t>(below(most + 1)) : kEdges[below(8)];
    return std::min(n, static_cast<std::int32_t>(most));
  }
  template <class Run>
  double prefill(cpu::IndexFormat format, std::int64_t heads, std::int64_t tokens,
                 std::int64_t keys, const Run& run_it) {
    const Queries in = queries(format, tokens, heads);
    const std::int64_t bytes = cpu::index_value_bytes(format), stride = keys + below(5);
    std::vector<std::uint8_t> values(static_cast<std::size_t>(keys * bytes));
    std::vector<std::uint8_t> scales(static_cast<std::size_t>(keys * 4));
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto x = floats(128, std::ldexp(1.0F, static_cast<int>(below(6)) - 3));
      cpu::encode_index_row(format, x.data(), values.data() + j * bytes, scales.data() + j * 4);
    }
    std::vector<std::int32_t> start, end;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int32_t n = length(keys);
      start.push_back(static_cast<std::int32_t>(below(keys - n + 1)));
      end.push_back(below(9) == 0 ? start.back() : start.back() + n);
    }
    const DeviceArray<std::uint8_t> q(in.q), q_scales(in.scales), d_values(values);
    const DeviceArray<std::uint8_t> d_scales(scales);
    const DeviceArray<float> w(in.w), logits(tokens * stride);
    const DeviceArray<std::int32_t> d_start(start), d_end(end);
    run_it(cpu::MqaLogitsPrefill{tokens, heads, format, q.data(), q_scales.data(), w.data(),
                                 d_values.data(), d_scales.data(), d_start.data(), d_end.data(),
                                 logits.data(), stride});
    const double error =
        judge(in, format, tokens, heads, start, end, logits.read(), stride,
              [&](std::int64_t, std::int64_t j, float* x) {
                cpu::decode_index_row(format, values.data() + j * bytes, scales.data() + j * 4, x);
              });
    EXPECT_EQ(logits.overrun(), 0);
    return error;
  }
  template <class Run>
  double paged(cpu::IndexFormat format, std::int64_t heads, std::int64_t requests,
               std::int64_t next_n, std::int64_t most, const Run& run_it) {
    const std::int64_t rows = 64, blocks = (most + rows - 1) / rows, tokens = requests * next_n;
    const Queries in = queries(format, tokens, heads);
    KeyPages pages(format, requests * blocks + 1, rows, 192);
    auto table = shuffled(requests * blocks);
    for (auto& id : table) ++id;
    std::vector<std::int32_t> start(static_cast<std::size_t>(tokens), 0), lens;
    for (std::int64_t b = 0; b < requests; ++b) {
      std::int32_t longest = 0;
      for (std::int64_t i = 0; i < next_n; ++i) {
        lens.push_back(length(most));
        longest = std::max(longest, lens.back());
      }
      for (std::int64_t j = 0; j < longest; ++j) {
        const auto x = floats(128, std::ldexp(1.0F, static_cast<int>(below(6)) - 3));
        pages.put(cpu::BlockTable{table.data(), blocks, rows}.slot(b, j), x.data());
      }
    }
    const std::int64_t stride = most + below(70), bytes = cpu::index_value_bytes(format);
    const DeviceArray<std::uint8_t> q(in.q), q_scales(in.scales), d_pages(pages.bytes);
    const DeviceArray<float> w(in.w), logits(tokens * stride);
    const DeviceArray<std::int32_t> d_table(table), d_lens(lens);
    run_it(cpu::MqaLogitsPaged{tokens,
                               heads,
                               next_n,
                               format,
                               q.data(),
                               q_scales.data(),
                               w.data(),
                               pages.at(d_pages.data()),
                               {d_table.data(), blocks, rows},
                               d_lens.data(),
                               logits.data(),
                               stride});
    const double error = judge(
        in, format, tokens, heads, start, lens, logits.read(), stride,
        [&](std::int64_t t, std::int64_t j, float* x) {
          const std::int64_t slot = cpu::BlockTable{table.data(), blocks, rows}.slot(t / next_n, j);
          const std::uint8_t* page = pages.bytes.data() + slot / rows * pages.stride;
          cpu::decode_index_row(format, page + slot % rows * bytes,
                                page + rows * bytes + slot % rows * 4, x);
        });
    EXPECT_EQ(logits.overrun(), 0);
    return error;
  }
};

}  // namespace warmgate::kernels::cuda
