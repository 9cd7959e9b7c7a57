#include "kernels/cpu/indexer.h"

#include <cmath>

#include "kernels/cpu/rope.h"
#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

class IndexerTest : public RandomTest {
 protected:
  // `requests` requests of `entries` entries each in shuffled pages of 64 rows.
  struct Keys {
    IndexFormat format;
    std::int64_t requests, blocks;
    PageMemory memory;
    std::vector<std::int32_t> pages;
    std::vector<std::vector<float>> channels;  // as encoded
    BlockTable table() const { return {pages.data(), blocks, memory.pages.rows}; }
  };
  Keys keys(IndexFormat format, std::int64_t requests, std::int64_t entries) {
    const std::int64_t rows = 64, blocks = (entries + rows - 1) / rows;
    const std::int64_t bytes = index_value_bytes(format);
    Keys k{format, requests, blocks, {requests * blocks + 1, rows, bytes + 4, 192}, {}, {}};
    k.pages = shuffled(requests * blocks, 1);
    for (std::int64_t b = 0; b < requests; ++b) {
      for (std::int64_t i = 0; i < entries; ++i) {
        k.channels.push_back(floats(128, 1 + static_cast<float>(below(4))));
        const std::int64_t slot = k.table().slot(b, i);
        std::uint8_t* page = k.memory.memory.data() + slot / rows * k.memory.pages.stride;
        encode_index_row(format, k.channels.back().data(), page + slot % rows * bytes,
                         page + rows * bytes + slot % rows * 4);
      }
    }
    return k;
  }
  struct Queries {
    std::vector<std::uint8_t> q, scales;
    std::vector<float> w;
  };
  Queries queries(IndexFormat format, std::int64_t tokens, std::int64_t heads) {
    std::vector<float> cos_sin(256 * 64);
    fill_rope_table({256, 160000, true, 16, 32, 1, 65536, cos_sin.data()});
    std::vector<std::int64_t> positions(tokens);
    for (auto& p : positions) p = below(256);
    const auto iq = bf16s(tokens * heads * 128), weights = bf16s(tokens * heads);
    Queries out{poisoned<std::uint8_t>(tokens * heads * index_value_bytes(format)),
                poisoned<std::uint8_t>(tokens * heads * 4), poisoned<float>(tokens * heads)};
    indexer_quant({tokens, heads, format, iq.data(), weights.data(), cos_sin.data(),
                   positions.data(), out.q.data(), out.scales.data(), out.w.data()});
    return out;
  }
};

constexpr IndexFormat kFormats[] = {IndexFormat::kFp8, IndexFormat::kMxfp4};

TEST_F(IndexerTest, RowsByTheDefinition) {
  for (int round = 0; round < 20; ++round) {
    auto x = floats(128, std::ldexp(1.0F, static_cast<int>(below(20)) - 10));
    if (round == 0) std::fill(x.begin(), x.end(), 0.0F);
    std::uint8_t values[128], scale[4];
    std::vector<float> back(128);
    const auto amax = [&](std::int64_t first, std::int64_t count) {
      float a = 0;
      for (std::int64_t i = first; i < first + count; ++i) a = std::max(a, std::abs(x[i]));
      return a;
    };
    encode_index_row(IndexFormat::kFp8, x.data(), values, scale);
    float s = 0;
    std::memcpy(&s, scale, 4);
    EXPECT_EQ(s, std::exp2(std::ceil(std::log2(std::max(amax(0, 128), 1e-4F) / 448.0))));
    for (std::int64_t i = 0; i < 128; ++i) ASSERT_EQ(values[i], to_e4m3(x[i] / s));
    decode_index_row(IndexFormat::kFp8, values, scale, back.data());
    for (std::int64_t i = 0; i < 128; ++i) ASSERT_EQ(back[i], e4m3_to_float(values[i]) * s);

    encode_index_row(IndexFormat::kMxfp4, x.data(), values, scale);
    for (std::int64_t i = 0; i < 128; ++i) {
      const double bound = std::max<double>(amax(i / 32 * 32, 32), std::ldexp(6.0, -126));
      const int exponent = static_cast<int>(std::ceil(std::log2(bound / 6)));
      ASSERT_EQ(scale[i / 32], exponent + 127);
      const int nibble = values[i / 2] >> (i % 2 * 4) & 15;  // even element low
      ASSERT_EQ(nibble, to_e2m1(std::ldexp(x[i], -exponent)));
    }
    decode_index_row(IndexFormat::kMxfp4, values, scale, back.data());
    for (std::int64_t i = 0; i < 128; ++i) {
      ASSERT_NEAR(back[i], x[i], std::max(amax(i / 32 * 32, 32) / 3 * 0.51F, std::abs(x[i]) / 4));
    }
  }
}

TEST_F(IndexerTest, QuantisedQueriesAndWeights) {
  const std::int64_t tokens = 3, heads = 5;
  std::vector<float> cos_sin(10 * 64);
  fill_rope_table({10, 160000, true, 16, 32, 1, 65536, cos_sin.data()});
  const std::vector<std::int64_t> positions{9, 0, 4};
  const auto iq = bf16s(tokens * heads * 128), weights = bf16s(tokens * heads);
  for (const IndexFormat format : kFormats) {
    const std::int64_t bytes = index_value_bytes(format);
    auto q = poisoned<std::uint8_t>(tokens * heads * bytes);
    auto scales = poisoned<std::uint8_t>(tokens * heads * 4);
    auto w = poisoned<float>(tokens * heads);
    indexer_quant({tokens, heads, format, iq.data(), weights.data(), cos_sin.data(),
                   positions.data(), q.data(), scales.data(), w.data()});
    for (std::int64_t r = 0; r < tokens * heads; ++r) {
      std::vector<float> x(128);
      for (std::int64_t i = 0; i < 128; ++i) x[i] = to_float(iq[r * 128 + i]);
      rotate(x.data() + 64, cos_sin.data() + positions[r / heads] * 64);
      for (float& v : x) v = round_to_bf16(v);
      std::uint8_t values[128], scale[4];
      encode_index_row(format, x.data(), values, scale);
      ASSERT_TRUE(same_bits(q.data() + r * bytes, values, bytes));
      double expected = to_float(weights[r]) / std::sqrt(128.0 * heads);
      if (format == IndexFormat::kFp8) {
        float s = 0;
        std::memcpy(&s, scale, 4);
        expected *= s;
        ASSERT_TRUE(is_poison(scales[r * 4]));
      } else {
        ASSERT_TRUE(same_bits(scales.data() + r * 4, scale, 4));
      }
      ASSERT_NEAR(w[r], expected, std::abs(expected) * 1e-6);
    }
  }
}

TEST_F(IndexerTest, ScoresEqualTheFormulaAndPagedEqualsGathered) {
  for (const IndexFormat format : kFormats) {
    const std::int64_t heads = 1 + below(9), requests = 2, entries = 129, per_request = 35;
    const std::int64_t tokens = requests * per_request, stride = 300;
    const std::int64_t bytes = index_value_bytes(format);
    const Keys k = keys(format, requests, entries);
    const Queries in = queries(format, tokens, heads);
    // Gathered: request 0's 64 entries, then request 1's 129.
    const std::vector<std::int32_t> seq_lens{64 * 4 + 3, 129 * 4};
    const std::int64_t gathered = 64 + 129;
    auto values = poisoned<std::uint8_t>((gathered + 1) * bytes);
    auto scales = poisoned<std::uint8_t>((gathered + 1) * 4);
    gather_indexer_keys({requests, 4, format, seq_lens.data(), k.memory.pages, k.table(),
                         values.data(), scales.data()});
    ASSERT_TRUE(is_poison(values[gathered * bytes]) && is_poison(scales[gathered * 4]));
    std::vector<std::int32_t> start, end, lens;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const bool second = t >= per_request;
      start.push_back(second ? 64 : 0);
      const std::int32_t n =
          t % per_request == 0 ? 0 : static_cast<std::int32_t>(1 + below(second ? 129 : 64));
      lens.push_back(n);
      end.push_back(start.back() + n);
    }
    auto prefill = poisoned<float>(tokens * stride), paged = poisoned<float>(tokens * stride);
    mqa_logits_prefill({tokens, heads, format, in.q.data(), in.scales.data(), in.w.data(),
                        values.data(), scales.data(), start.data(), end.data(), prefill.data(),
                        stride});
    mqa_logits_paged({tokens, heads, per_request, format, in.q.data(), in.scales.data(),
                      in.w.data(), k.memory.pages, k.table(), lens.data(), paged.data(), stride});
    std::vector<float> key(128), query(128);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float* row = prefill.data() + t * stride;
      for (std::int64_t j = 0; j < stride; ++j) {
        const bool inside = j >= start[t] && j < end[t];
        ASSERT_EQ(is_poison(row[j]), !inside) << t << " " << j;
        ASSERT_EQ(is_poison(paged[t * stride + j]), j >= lens[t]);
        if (!inside || (t + j) % 7 != 0) continue;
        decode_index_row(format, values.data() + j * bytes, scales.data() + j * 4, key.data());
        double expected = 0, magnitude = 0;
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t at = t * heads + h;
          const float one = 1;
          const auto* scale = format == IndexFormat::kFp8
                                  ? reinterpret_cast<const std::uint8_t*>(&one)
                                  : in.scales.data() + at * 4;
          decode_index_row(format, in.q.data() + at * bytes, scale, query.data());
          double dot = 0;
          for (std::int64_t i = 0; i < 128; ++i) dot += double{query[i]} * key[i];
          expected += std::max(dot, 0.0) * in.w[at];
          magnitude += std::abs(dot * in.w[at]);
        }
        ASSERT_NEAR(row[j], expected, magnitude * 1e-5 + 1e-6);
      }
      ASSERT_TRUE(same_bits(row + start[t], paged.data() + t * stride, lens[t])) << t;
    }
  }
}

TEST_F(IndexerTest, AQueryAloneAndOnTheBaselineGivesTheSameBits) {
  for (const IndexFormat format : kFormats) {
    const std::int64_t heads = 8, tokens = 40, count = 100;
    const std::int64_t bytes = index_value_bytes(format);
    const Keys k = keys(format, 1, count);
    const Queries in = queries(format, tokens, heads);
    const std::int32_t seq_len = count * 4;
    std::vector<std::uint8_t> values(count * bytes), scales(count * 4);
    gather_indexer_keys(
        {1, 4, format, &seq_len, k.memory.pages, k.table(), values.data(), scales.data()});
    std::vector<std::int32_t> start(tokens, 0), end(tokens, count);
    std::vector<float> together(tokens * count), alone(count);
    const auto run = [&](std::int64_t t, std::int64_t n, float* out) {
      mqa_logits_prefill({n, heads, format, in.q.data() + t * heads * bytes,
                          in.scales.data() + t * heads * 4, in.w.data() + t * heads, values.data(),
                          scales.data(), start.data() + t, end.data() + t, out, count});
    };
    run(0, tokens, together.data());
    force_variant(Variant::kBaseline);
    for (const std::int64_t t : {0, 31, 32, 39}) {
      end[t] = 77;  // a shorter range does not change what is inside
      run(t, 1, alone.data());
      EXPECT_TRUE(same_bits(alone.data(), together.data() + t * count, 77)) << t;
    }
    force_variant(Variant::kAvx2);
  }
}

}  // namespace
}  // namespace warmgate::kernels::cpu
