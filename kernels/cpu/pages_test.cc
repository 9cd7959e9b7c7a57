#include "kernels/cpu/pages.h"

#include <cmath>

#include "kernels/cpu/query_key.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

class PagesTest : public RandomTest {
 protected:
  // Rows whose blocks differ widely in magnitude.
  std::vector<Bf16> rows(std::int64_t count) {
    std::vector<Bf16> out;
    for (std::int64_t b = 0; b < count * 8; ++b) {
      const auto block = bf16s(64, std::ldexp(1.0F, static_cast<int>(below(30)) - 20));
      out.insert(out.end(), block.begin(), block.end());
    }
    return out;
  }
};

TEST_F(PagesTest, LayoutByteForByte) {
  const std::int64_t page_rows = 64, slot = 64 + 63;
  PageMemory m(2, page_rows, 584, 64);
  const auto k = rows(1);
  insert_ds_mla({1, k.data(), kHeadDim, &slot, m.pages});
  const std::uint8_t* page = m.memory.data() + m.pages.stride;
  const std::uint8_t* data = page + 63 * 576;
  const std::uint8_t* scales = page + 64 * 576 + 63 * 8;
  for (int b = 0; b < 7; ++b) {
    float amax = 0;
    for (int i = 0; i < 64; ++i) amax = std::max(amax, std::abs(to_float(k[b * 64 + i])));
    const int exponent = static_cast<int>(std::ceil(std::log2(std::max(amax, 1e-4F) / 448.0)));
    EXPECT_EQ(scales[b], exponent + 127);
    for (int i = 0; i < 64; ++i) {
      const float scaled = std::ldexp(to_float(k[b * 64 + i]), -exponent);
      ASSERT_EQ(data[b * 64 + i], to_e4m3(std::clamp(scaled, -448.0F, 448.0F)));
    }
  }
  EXPECT_EQ(scales[7], 0);
  EXPECT_EQ(std::memcmp(data + 448, k.data() + 448, 128), 0);
  // Nothing else was written, neither rows nor padding.
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(m.memory.size()); ++i) {
    const std::uint8_t* at = m.memory.data() + i;
    const bool own = (at >= data && at < data + 576) || (at >= scales && at < scales + 8);
    ASSERT_TRUE(own || *at == 0xFF) << i;
  }
}

TEST_F(PagesTest, DecodingIsWithinHalfAStepAndStable) {
  PageMemory m(3, 2, 584, 16);
  const auto k = rows(6);
  std::vector<std::int64_t> slots{5, 0, -1, 3, -1, 2};
  insert_ds_mla({6, k.data(), kHeadDim, slots.data(), m.pages});
  for (std::int64_t t = 0; t < 6; ++t) {
    if (slots[t] < 0) continue;
    std::vector<Bf16> out(512), again(512);
    std::vector<float> wide(512);
    decode_ds_mla(m.pages, slots[t], out.data());
    decode_ds_mla(m.pages, slots[t], wide.data());
    for (std::int64_t c = 0; c < 512; ++c) {
      const float in = to_float(k[t * 512 + c]), got = to_float(out[c]);
      ASSERT_EQ(wide[c], got);
      if (c >= 448) {
        ASSERT_EQ(out[c], k[t * 512 + c]);
      } else {
        float amax = 0;
        for (std::int64_t i = 0; i < 64; ++i) {
          amax = std::max(amax, std::abs(to_float(k[t * 512 + c / 64 * 64 + i])));
        }
        // Half a step: 2^-4 relative, or half the subnormal spacing.
        const float step = std::max(amax, 1e-4F) / 224 * 0x1p-10F;
        ASSERT_LE(std::abs(in - got), std::max(std::abs(in) * 0x1p-4F, step));
      }
    }
    // What was read is a fixed point of the format.
    PageMemory second(1, 1, 584, 0);
    const std::int64_t zero = 0;
    insert_ds_mla({1, out.data(), kHeadDim, &zero, second.pages});
    decode_ds_mla(second.pages, 0, again.data());
    EXPECT_TRUE(same_bits(out, again));
  }
}

TEST_F(PagesTest, ZeroInfinityAndNanRows) {
  PageMemory m(1, 1, 584, 0);
  std::vector<Bf16> row(512, 0), out(512);
  const std::int64_t slot = 0;
  insert_ds_mla({1, row.data(), kHeadDim, &slot, m.pages});
  decode_ds_mla(m.pages, 0, out.data());
  EXPECT_TRUE(same_bits(row, out));
  EXPECT_EQ(m.memory[576], 127 - 22);
  row[3] = 0xFFFF;  // NaN stays visible and spoils nothing else
  row[4] = to_bf16(1);
  insert_ds_mla({1, row.data(), kHeadDim, &slot, m.pages});
  decode_ds_mla(m.pages, 0, out.data());
  EXPECT_TRUE(std::isnan(to_float(out[3])));
  EXPECT_EQ(to_float(out[4]), 1.0F);
}

TEST_F(PagesTest, GatherThroughTheTable) {
  const std::int64_t page_rows = 4, blocks = 8, requests = 3;
  PageMemory m(requests * blocks + 1, page_rows, 584, 24);
  const auto pages = shuffled(requests * blocks, 1);  // page 0 is the null block
  const BlockTable table{pages.data(), blocks, page_rows};
  const auto k = rows(requests * blocks * page_rows);
  for (std::int64_t b = 0; b < requests; ++b) {
    for (std::int64_t i = 0; i < blocks * page_rows; ++i) {
      const std::int64_t slot = table.slot(b, i);
      insert_ds_mla({1, k.data() + (b * blocks * page_rows + i) * 512, 512, &slot, m.pages});
    }
  }
  const std::vector<std::int32_t> seq_lens{31, 0, 17}, gather_lens{5, 0, 17};
  for (const bool window : {false, true}) {
    const std::int64_t ratio = 4, longest = 20, offset = 2;
    auto kv = poisoned<Bf16>(requests * longest * 512);
    dequant_gather({requests, ratio, offset, longest * 512, seq_lens.data(),
                    window ? gather_lens.data() : nullptr, m.pages, table, kv.data()});
    for (std::int64_t b = 0; b < requests; ++b) {
      const std::int64_t count = window ? gather_lens[b] : seq_lens[b] / ratio;
      const std::int64_t begin = window ? seq_lens[b] - count : 0;
      for (std::int64_t i = 0; i < longest; ++i) {
        const Bf16* got = kv.data() + (b * longest + i) * 512;
        if (i < offset || i >= offset + count) {
          ASSERT_TRUE(is_poison(got[0]) && is_poison(got[511])) << b << " " << i;
          continue;
        }
        std::vector<Bf16> expected(512);
        decode_ds_mla(m.pages, table.slot(b, begin + i - offset), expected.data());
        ASSERT_TRUE(same_bits(got, expected.data(), 512)) << b << " " << i;
      }
    }
  }
}

TEST_F(PagesTest, NegativeTableEntriesReadTheNullBlock) {
  const std::int32_t pages[] = {-1, 3};
  const BlockTable table{pages, 2, 4};
  EXPECT_EQ(table.slot(0, 2), 2);
  EXPECT_EQ(table.slot(0, 4), 12);
}

TEST_F(PagesTest, QueryNormRotationAndInsert) {
  const std::int64_t tokens = 5, heads = 3, padded_heads = 8;
  std::vector<float> cos_sin(40 * 64);
  fill_rope_table({40, 10000, true, 16, 32, 1, 65536, cos_sin.data()});
  const auto q = bf16s(tokens * heads * 512, 3), kv = rows(tokens);
  const std::vector<std::int64_t> positions{0, 1, 39, 7, 8}, slots{3, -1, 0, -1, 9};
  PageMemory m(3, 4, 584, 8);
  auto out = poisoned<Bf16>(tokens * padded_heads * 512);
  qnorm_rope_insert({tokens, heads, padded_heads, q.data(), kv.data(), cos_sin.data(),
                     positions.data(), slots.data(), m.pages, out.data()});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t h = 0; h < padded_heads; ++h) {
      const Bf16* got = out.data() + (t * padded_heads + h) * 512;
      double squares = 0;
      for (std::int64_t c = 0; c < 512; ++c) {
        if (h < heads) squares += std::pow(to_float(q[(t * heads + h) * 512 + c]), 2);
      }
      const double norm = std::sqrt(squares / 512 + 1e-6);
      for (std::int64_t c = 0; c < 512; ++c) {
        if (h >= heads) {
          ASSERT_EQ(got[c], 0);
          continue;
        }
        const Bf16* in = q.data() + (t * heads + h) * 512;
        double expected = to_float(in[c]);
        if (c >= 448) {
          const double cos = cos_sin[positions[t] * 64 + (c - 448) / 2];
          const double sin = cos_sin[positions[t] * 64 + 32 + (c - 448) / 2];
          expected = c % 2 == 0 ? to_float(in[c]) * cos - to_float(in[c + 1]) * sin
                                : to_float(in[c]) * cos + to_float(in[c - 1]) * sin;
        }
        ASSERT_NEAR(to_float(got[c]), expected / norm, std::abs(expected / norm) * 0x1p-8 + 1e-5);
      }
    }
    if (slots[t] < 0) continue;
    std::vector<float> row(512);
    for (std::int64_t c = 0; c < 512; ++c) row[c] = to_float(kv[t * 512 + c]);
    rotate(row.data() + 448, cos_sin.data() + positions[t] * 64);
    std::uint8_t data[576], scales[8];
    encode_ds_mla(row.data(), data, scales);
    const std::uint8_t* page = m.memory.data() + slots[t] / 4 * m.pages.stride;
    EXPECT_EQ(std::memcmp(page + slots[t] % 4 * 576, data, 576), 0) << t;
    EXPECT_EQ(std::memcmp(page + 4 * 576 + slots[t] % 4 * 8, scales, 8), 0) << t;
  }
  auto padded_only = poisoned<Bf16>(tokens * padded_heads * 512);
  pad_q({tokens, heads, padded_heads, q.data(), padded_only.data()});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Bf16* got = padded_only.data() + t * padded_heads * 512;
    EXPECT_TRUE(same_bits(got, q.data() + t * heads * 512, heads * 512));
    for (std::int64_t i = heads * 512; i < padded_heads * 512; ++i) ASSERT_EQ(got[i], 0);
  }
}

}  // namespace
}  // namespace warmgate::kernels::cpu
