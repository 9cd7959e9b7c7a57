#include "kernels/cpu/compressor.h"

#include <cmath>

#include "kernels/cpu/indexer.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

// One request's state cache, filled through save_partial_states, and its float64 entries.
struct Case {
  std::int64_t ratio, overlap, dim, state_rows, length;
  EntryFormat format;
};

class CompressorTest : public RandomTest {
 protected:
  struct Setup {
    Case c;
    std::int64_t width, entries;
    std::vector<float> kv_score, ape, cos_sin;
    std::vector<Bf16> norm;
    std::vector<std::int32_t> state_pages, token_to_req;
    std::vector<std::int64_t> positions, state_slots, slots;
    PageMemory state, cache;
  };

  Setup set_up(const Case& c) {
    const std::int64_t width = (1 + c.overlap) * c.dim;
    const std::int64_t pages = (c.length + c.state_rows - 1) / c.state_rows;
    const std::int64_t row_bytes = c.format == EntryFormat::kDsMla        ? 584
                                   : c.format == EntryFormat::kIndexerFp8 ? 132
                                                                          : 68;
    Setup s{c,
            width,
            c.length / c.ratio,
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {pages + 1, c.state_rows, 2 * width * 4, 64},
            {c.length / c.ratio / 4 + 2, 4, row_bytes, 32}};
    s.kv_score = floats(c.length * 2 * width);
    s.ape = floats(c.ratio * width);
    s.norm = bf16s(c.dim);
    s.cos_sin.resize(c.length * 64);
    fill_rope_table({c.length, 160000, true, 16, 32, 1, 65536, s.cos_sin.data()});
    s.state_pages = shuffled(pages, 1);
    const BlockTable table{s.state_pages.data(), pages, c.state_rows};
    for (std::int64_t p = 0; p < c.length; ++p) {
      s.token_to_req.push_back(0);
      s.positions.push_back(p);
      s.state_slots.push_back(table.slot(0, p));
      s.slots.push_back((p + 1) % c.ratio == 0 ? 4 + p / c.ratio : -1);
    }
    return s;
  }

  static void save(Setup& s, std::int64_t first, std::int64_t count) {
    save_partial_states({count, s.width, s.c.ratio, s.kv_score.data() + first * 2 * s.width,
                         s.ape.data(), s.state_slots.data() + first, s.positions.data() + first,
                         s.state.pages});
  }
  static void compress(Setup& s, std::int64_t first, std::int64_t count) {
    CompressWindow p;
    p.tokens = count, p.ratio = s.c.ratio, p.overlap = s.c.overlap, p.dim = s.c.dim;
    p.state = s.state.pages;
    p.state_table = {s.state_pages.data(), static_cast<std::int64_t>(s.state_pages.size()),
                     s.c.state_rows};
    p.token_to_req = s.token_to_req.data() + first;
    p.positions = s.positions.data() + first;
    p.norm = s.norm.data(), p.cos_sin = s.cos_sin.data();
    p.slots = s.slots.data() + first;
    p.format = s.c.format, p.cache = s.cache.pages;
    compress_window(p);
  }

  static double pooled(const Setup& s, std::int64_t entry, std::int64_t channel) {
    const std::int64_t p = entry * s.c.ratio + s.c.ratio - 1;
    double top = -1e300, sum = 0, value = 0;
    for (const bool second : {false, true}) {
      for (std::int64_t i = 0; i < (1 + s.c.overlap) * s.c.ratio; ++i) {
        const std::int64_t row = p - (1 + s.c.overlap) * s.c.ratio + 1 + i;
        if (row < 0) continue;
        const std::int64_t column = channel + (i >= s.c.ratio ? s.c.dim : 0);
        const double score = static_cast<double>(s.kv_score[row * 2 * s.width + s.width + column]) +
                             s.ape[row % s.c.ratio * s.width + column];
        if (!second) {
          top = std::max(top, score);
        } else {
          sum += std::exp(score - top);
          value += std::exp(score - top) * s.kv_score[row * 2 * s.width + column];
        }
      }
    }
    return value / sum;
  }
  static std::vector<double> entry_by_formula(const Setup& s, std::int64_t entry) {
    std::vector<double> v(s.c.dim);
    double squares = 0;
    for (std::int64_t c = 0; c < s.c.dim; ++c) {
      v[c] = pooled(s, entry, c);
      squares += v[c] * v[c];
    }
    const double norm = std::sqrt(squares / static_cast<double>(s.c.dim) + 1e-6);
    for (std::int64_t c = 0; c < s.c.dim; ++c) v[c] *= to_float(s.norm[c]) / norm;
    const float* angles = s.cos_sin.data() + entry * s.c.ratio * 64;
    for (std::int64_t i = 0; i < 32; ++i) {
      double& e = v[s.c.dim - 64 + 2 * i];
      double& o = v[s.c.dim - 63 + 2 * i];
      const double even = e * angles[i] - o * angles[32 + i];
      o = o * angles[i] + e * angles[32 + i];
      e = even;
    }
    return v;
  }
  static std::vector<float> stored(Setup& s, std::int64_t entry) {
    std::vector<float> out(s.c.dim);
    if (s.c.format == EntryFormat::kDsMla) {
      decode_ds_mla(s.cache.pages, 4 + entry, out.data());
      return out;
    }
    const bool fp8 = s.c.format == EntryFormat::kIndexerFp8;
    const std::int64_t bytes = fp8 ? 128 : 64;
    const std::uint8_t* page = s.cache.memory.data() + (1 + entry / 4) * s.cache.pages.stride;
    decode_index_row(fp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4, page + entry % 4 * bytes,
                     page + 4 * bytes + entry % 4 * 4, out.data());
    return out;
  }
};

constexpr Case kCases[] = {{4, 1, 512, 4, 21, EntryFormat::kDsMla},
                           {128, 0, 512, 8, 260, EntryFormat::kDsMla},
                           {4, 1, 128, 4, 19, EntryFormat::kIndexerFp8},
                           {4, 1, 128, 4, 19, EntryFormat::kIndexerMxfp4}};

TEST_F(CompressorTest, EntriesEqualTheFormulaWithinTheirFormat) {
  for (const Case& c : kCases) {
    Setup s = set_up(c);
    save(s, 0, c.length);
    compress(s, 0, c.length);
    const double relative = c.format == EntryFormat::kIndexerMxfp4 ? 0.25 : 0x1p-4;
    for (std::int64_t e = 0; e < s.entries; ++e) {
      const auto expected = entry_by_formula(s, e);
      const auto got = stored(s, e);
      double amax = 0;
      for (const double v : expected) amax = std::max(amax, std::abs(v));
      for (std::int64_t i = 0; i < c.dim; ++i) {
        const bool rope = c.format == EntryFormat::kDsMla && i >= 448;
        const double floor = amax * (c.format == EntryFormat::kIndexerMxfp4 ? 0.09 : 1e-4);
        const double limit = rope ? std::abs(expected[i]) * 0x1p-7 + 1e-4
                                  : std::abs(expected[i]) * (relative + 0x1p-8) + floor;
        ASSERT_NEAR(got[i], expected[i], limit) << "ratio " << c.ratio << " entry " << e;
      }
    }
    // Pages 0 and behind the last entry stay as they were.
    EXPECT_TRUE(is_poison(s.cache.memory.front()) && is_poison(s.cache.memory.back()));
  }
}

TEST_F(CompressorTest, ChunkByChunkGivesTheSameBits) {
  for (const Case& c : kCases) {
    Setup whole = set_up(c);
    save(whole, 0, c.length);
    compress(whole, 0, c.length);
    const auto expected = whole.cache.memory;
    std::fill(whole.cache.memory.begin(), whole.cache.memory.end(), std::uint8_t{0xFF});
    std::fill(whole.state.memory.begin(), whole.state.memory.end(), std::uint8_t{0xFF});
    for (std::int64_t first = 0; first < c.length;) {
      const std::int64_t count = std::min(1 + below(7), c.length - first);
      save(whole, first, count);
      compress(whole, first, count);
      first += count;
    }
    EXPECT_TRUE(same_bits(whole.cache.memory, expected)) << "ratio " << c.ratio;
    force_variant(Variant::kBaseline);
    compress(whole, 0, c.length);
    EXPECT_TRUE(same_bits(whole.cache.memory, expected)) << "ratio " << c.ratio;
    force_variant(Variant::kAvx2);
  }
}

TEST_F(CompressorTest, StateRowsAndSkippedSlots) {
  const std::int64_t width = 6, ratio = 4, tokens = 3;
  PageMemory state(2, 4, 2 * width * 4, 16);
  const auto in = floats(tokens * 2 * width), ape = floats(ratio * width);
  const std::vector<std::int64_t> slots{6, -1, 1}, positions{6, 7, 129};
  save_partial_states(
      {tokens, width, ratio, in.data(), ape.data(), slots.data(), positions.data(), state.pages});
  const auto row = [&](std::int64_t slot, std::int64_t i) {
    float v = 0;
    std::memcpy(&v, state.memory.data() + slot / 4 * state.pages.stride + (slot % 4 * 12 + i) * 4,
                4);
    return v;
  };
  for (std::int64_t i = 0; i < width; ++i) {
    EXPECT_EQ(row(6, i), in[i]);
    EXPECT_EQ(row(6, width + i), in[width + i] + ape[2 * width + i]);
    EXPECT_EQ(row(1, width + i), in[2 * 2 * width + width + i] + ape[1 * width + i]);
    EXPECT_TRUE(is_poison(row(7, i)) && is_poison(row(0, i)));
  }
}

TEST_F(CompressorTest, NoEntryWhereTheSlotOrThePositionSaysNo) {
  Setup s = set_up(kCases[0]);
  save(s, 0, s.c.length);
  for (std::size_t t = 0; t < s.slots.size(); ++t) s.slots[t] = t % 4 == 3 ? -1 : 5;
  compress(s, 0, s.c.length);
  for (const std::uint8_t byte : s.cache.memory) ASSERT_EQ(byte, 0xFF);
}

TEST_F(CompressorTest, TheFirstEntryOfAnOverlappingCompressorUsesItsOwnWindowOnly) {
  Setup s = set_up(kCases[0]);
  save(s, 0, s.c.length);
  compress(s, 3, 1);
  const auto expected = stored(s, 0);
  // Only the second half of the columns counts for the first entry.
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t i = 0; i < 512; ++i) {
      s.kv_score[t * 2 * s.width + i] = s.kv_score[t * 2 * s.width + s.width + i] = 1e9F;
    }
  }
  save(s, 0, 4);
  compress(s, 3, 1);
  EXPECT_TRUE(same_bits(stored(s, 0), expected));
}

}  // namespace
}  // namespace warmgate::kernels::cpu
