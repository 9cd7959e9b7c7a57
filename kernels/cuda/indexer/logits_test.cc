// Scores against the float64 oracle of the quantised inputs, path by path.
#include "kernels/cuda/indexer/logits.h"

#include "kernels/cuda/indexer/logits_paths.h"
#include "kernels/cuda/indexer/testing.h"
#include "kernels/reference/compare.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/number.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::IndexFormat;
namespace ref = reference;

// ‖out − oracle‖ of a token's scores over the norm of Σ_head |ReLU(q·k)·w|: weights of both signs
// cancel, so the scores' own norm says little where a token sees few keys. fp32 sums of exact
// products; the tensor cores drop what lies 13 bits behind the largest product of a sum.
constexpr double kExactLimit = 1e-6, kTensorLimit = 5e-4;

class LogitsTest : public IndexerTest {
 protected:
  struct Queries {
    std::vector<std::uint8_t> q, scales;
    std::vector<float> w;
  };
  Queries queries(IndexFormat format, std::int64_t tokens, std::int64_t heads) {
    Queries out;
    const std::int64_t bytes = cpu::index_value_bytes(format);
    out.q.resize(static_cast<std::size_t>(tokens * heads * bytes));
    out.scales.assign(static_cast<std::size_t>(tokens * heads * 4), 0xFF);
    for (std::int64_t r = 0; r < tokens * heads; ++r) {
      const auto x = floats(128);
      std::uint8_t scale[4];
      cpu::encode_index_row(format, x.data(), out.q.data() + r * bytes, scale);
      if (format == IndexFormat::kMxfp4) std::memcpy(out.scales.data() + r * 4, scale, 4);
    }
    out.w = floats(tokens * heads);
    return out;
  }
  // Worst row error; exact about what must not be written. key(t, j): the channels of column j.
  template <class Key>
  double judge(const Queries& in, IndexFormat format, std::int64_t tokens, std::int64_t heads,
               const std::vector<std::int32_t>& start, const std::vector<std::int32_t>& end,
               const std::vector<float>& logits, std::int64_t stride, const Key& key) {
    double worst = 0;
    const std::int64_t bytes = cpu::index_value_bytes(format);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      ref::Vector query, weights, sizes, got;
      float x[128];
      for (std::int64_t r = t * heads; r < (t + 1) * heads; ++r) {
        const float one = 1;
        std::uint8_t scale[4];
        std::memcpy(
            scale,
            format == IndexFormat::kFp8 ? static_cast<const void*>(&one) : in.scales.data() + r * 4,
            4);
        cpu::decode_index_row(format, in.q.data() + r * bytes, scale, x);
        query.insert(query.end(), x, x + 128);
        weights.push_back(in.w[static_cast<std::size_t>(r)]);
        sizes.push_back(std::abs(weights.back()));
      }
      const std::int64_t n = std::max(end[at] - start[at], 0);
      ref::Matrix keys(n, 128);
      for (std::int64_t j = 0; j < n; ++j) {
        key(t, start[at] + j, x);
        keys.set_row(j, ref::Vector(x, x + 128));
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
      const ref::Vector want = ref::indexer_scores(query, keys, weights);
      const ref::Vector magnitude = ref::indexer_scores(query, keys, sizes);
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
  double prefill(IndexFormat format, std::int64_t heads, std::int64_t tokens, std::int64_t keys,
                 const Run& run_it) {
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
  double paged(IndexFormat format, std::int64_t heads, std::int64_t requests, std::int64_t next_n,
               std::int64_t most, const Run& run_it) {
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

TEST_F(LogitsTest, GeneralPrefillOfAnyFormatAndHeads) {
  TestLaunch launch(1 << 20);
  const auto run_it = [&](const cpu::MqaLogitsPrefill& p) { logits::run_general(p, launch.get()); };
  for (const IndexFormat format : {IndexFormat::kFp8, IndexFormat::kMxfp4}) {
    for (const std::int64_t heads : {1, 8, 33, 64}) {
      const double error = prefill(format, heads, 1 + below(20), 1 + below(400), run_it);
      EXPECT_LE(error, kExactLimit) << heads << " heads";
      std::printf("general prefill, %d heads: error %.2e\n", static_cast<int>(heads), error);
    }
  }
}

TEST_F(LogitsTest, GeneralPagedOfAnyFormatAndHeads) {
  TestLaunch launch(1 << 20);
  const auto run_it = [&](const cpu::MqaLogitsPaged& p) { logits::run_general(p, launch.get()); };
  for (const IndexFormat format : {IndexFormat::kFp8, IndexFormat::kMxfp4}) {
    const double error = paged(format, 1 + below(70), 3, 1 + below(5), 300, run_it);
    EXPECT_LE(error, kExactLimit);
    std::printf("general paged: error %.2e\n", error);
  }
}

TEST_F(LogitsTest, HopperPrefill) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  double worst = 0;
  for (const std::int64_t tokens : {1, 2, 3, 4, 5, 8, 9, 31, 70}) {
    const double error = prefill(IndexFormat::kFp8, 64, tokens, tokens < 4 ? 1 + below(70) : 400,
                                 [&](const cpu::MqaLogitsPrefill& p) {
                                   ASSERT_FALSE(logits::fits_hopper(p, launch.get()));
                                   logits::run_hopper(p, launch.get());
                                 });
    ASSERT_LE(error, kTensorLimit) << tokens << " tokens";
    worst = std::max(worst, error);
  }
  EXPECT_LE(overall(), 1e-3);
  std::printf("hopper prefill: error %.2e, over all scores %.2e\n", worst, overall());
}

TEST_F(LogitsTest, HopperPaged) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  for (const std::int64_t next_n : {1, 2, 3, 4, 5, 8}) {
    double worst = 0;
    for (const std::int64_t requests : {1, 2, 7}) {
      const double error =
          paged(IndexFormat::kFp8, 64, requests, next_n, 260, [&](const cpu::MqaLogitsPaged& p) {
            ASSERT_FALSE(logits::fits_hopper(p, launch.get()));
            logits::run_hopper(p, launch.get());
          });
      ASSERT_LE(error, kTensorLimit) << requests << " requests, next_n " << next_n;
      worst = std::max(worst, error);
    }
    EXPECT_LE(overall(), 1e-3);
    std::printf("hopper paged, next_n %d: error %.2e, over all scores %.2e\n",
                static_cast<int>(next_n), worst, overall());
  }
}

TEST_F(LogitsTest, NothingToScoreWritesNothing) {
  TestLaunch launch(1 << 20);
  const std::int64_t tokens = 9;
  const Queries in = queries(IndexFormat::kFp8, tokens, 64);
  const DeviceArray<std::uint8_t> q(in.q), values(128), scales(4);
  const DeviceArray<float> w(in.w), out(tokens * 10);
  const std::vector<std::int32_t> same(tokens, 3);
  const DeviceArray<std::int32_t> start(same), end(same);
  run(cpu::MqaLogitsPrefill{tokens, 64, IndexFormat::kFp8, q.data(), nullptr, w.data(),
                            values.data(), scales.data(), start.data(), end.data(), out.data(), 10},
      launch.get());
  for (const float v : out.read()) ASSERT_TRUE(std::isnan(v));
}

// Many tiles a block, groups that cross blocks: both paths, and a key of NaN that must show.
TEST_F(LogitsTest, LargeHopperAgreesWithGeneral) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  const std::int64_t tokens = 150, keys = 9000 + below(500), stride = keys + below(7);
  const Queries in = queries(IndexFormat::kFp8, tokens, 64);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(keys * 128));
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(keys * 4));
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto x = floats(128);
    cpu::encode_index_row(IndexFormat::kFp8, x.data(), values.data() + j * 128,
                          scales.data() + j * 4);
  }
  const std::int64_t poisoned = below(keys);
  values[static_cast<std::size_t>(poisoned * 128 + below(128))] = 0x7F;
  std::vector<std::int32_t> start, end;
  for (std::int64_t t = 0; t < tokens; ++t) {
    start.push_back(static_cast<std::int32_t>(below(100)));
    end.push_back(static_cast<std::int32_t>(start.back() + below(keys - start.back() + 1)));
  }
  const DeviceArray<std::uint8_t> q(in.q), d_values(values), d_scales(scales);
  const DeviceArray<float> w(in.w), fast(tokens * stride), plain(tokens * stride);
  const DeviceArray<std::int32_t> d_start(start), d_end(end);
  cpu::MqaLogitsPrefill p{tokens,         64,           IndexFormat::kFp8, q.data(),
                          nullptr,        w.data(),     d_values.data(),   d_scales.data(),
                          d_start.data(), d_end.data(), plain.data(),      stride};
  logits::run_general(p, launch.get());
  p.logits = fast.data();
  run(p, launch.get());
  const auto a = fast.read(), b = plain.read();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i]))
        << "token " << i / static_cast<std::size_t>(stride) << " column "
        << i % static_cast<std::size_t>(stride);
    if (std::isnan(a[i])) continue;
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  const double error = std::sqrt(difference / norm);
  std::printf("large prefill, hopper against general: %.2e\n", error);
  EXPECT_LE(error, 1e-3);  // of the scores' own norm
}

}  // namespace
}  // namespace warmgate::kernels::cuda
