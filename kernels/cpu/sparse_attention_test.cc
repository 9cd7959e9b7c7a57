#include "kernels/cpu/sparse_attention.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A window cache and a compressed cache, and the same rows as one bf16 workspace.
class SparseAttentionTest : public RandomTest {
 protected:
  static constexpr std::int64_t kWindowRows = 64, kExtraRows = 2;
  PageMemory window_{4, kWindowRows, 584, 64}, extra_{140, kExtraRows, 584, 560};
  std::vector<Bf16> workspace_;  // window slots, then extra slots

  void fill() {
    const std::int64_t window = 4 * kWindowRows, extra = 140 * kExtraRows;
    workspace_.resize((window + extra) * 512);
    for (std::int64_t s = 0; s < window + extra; ++s) {
      const auto row = bf16s(512);
      const std::int64_t slot = s < window ? s : s - window;
      const Pages& pages = s < window ? window_.pages : extra_.pages;
      insert_ds_mla({1, row.data(), 512, &slot, pages});
      decode_ds_mla(pages, slot, workspace_.data() + s * 512);
    }
  }
  static std::int32_t extra_row(std::int32_t slot) { return 4 * kWindowRows + slot; }

  // Query of `real` heads and padding.
  std::vector<Bf16> query(std::int64_t real, std::int64_t heads) {
    auto q = bf16s(heads * 512, 2);
    std::fill(q.begin() + real * 512, q.end(), Bf16{0});
    return q;
  }
};

std::vector<double> by_formula(const Bf16* q, const Bf16* kv, const std::vector<std::int32_t>& keys,
                               float sink) {
  std::vector<double> scores, out(512, 0.0);
  double top = -1e300, sum = 0;
  for (const std::int32_t k : keys) {
    double s = 0;
    for (std::int64_t c = 0; c < 512; ++c) s += double{to_float(q[c])} * to_float(kv[k * 512 + c]);
    scores.push_back(s / std::sqrt(512.0));
    top = std::max(top, scores.back());
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double e = std::exp(scores[i] - top);
    sum += e;
    for (std::int64_t c = 0; c < 512; ++c) out[c] += e * to_float(kv[keys[i] * 512 + c]);
  }
  for (double& v : out) v = keys.empty() ? 0 : v / (sum + std::exp(sink - top));
  return out;
}

TEST_F(SparseAttentionTest, BothFormsEqualTheFormulaAndEachOtherInEveryBit) {
  fill();
  const std::int64_t heads = 12, real = 7, width = 128, extra_width = 192;
  const std::int64_t combined = width + extra_width;
  for (const std::int64_t window : {0, 1, 63, 64, 65, 127, 128}) {
    const std::int64_t extra = window % 3 == 0 ? 0 : below(extra_width + 1);
    const auto q = query(real, heads);
    auto sink = floats(heads);
    sink[1] = -kInfinity, sink[2] = kInfinity, sink[heads - 1] = -kInfinity;
    auto indices = poisoned<std::int32_t>(width),
         extra_indices = poisoned<std::int32_t>(extra_width);
    auto list = poisoned<std::int32_t>(combined);
    const auto window_slots = shuffled(4 * kWindowRows), extra_slots = shuffled(140 * kExtraRows);
    std::vector<std::int32_t> keys;
    for (std::int64_t i = 0; i < extra; ++i) {
      extra_indices[i] = below(5) == 0 ? -1 : extra_slots[i];  // skipped wherever they stand
      list[i] = extra_indices[i] < 0 ? -1 : extra_row(extra_slots[i]);
      if (list[i] >= 0) keys.push_back(list[i]);
    }
    for (std::int64_t i = 0; i < window; ++i) {
      indices[i] = list[extra + i] = window_slots[i];
      keys.push_back(window_slots[i]);
    }
    const auto n = static_cast<std::int32_t>(window), m = static_cast<std::int32_t>(extra);
    const std::int32_t both = n + m;
    auto prefill = poisoned<Bf16>(heads * 512), decode = poisoned<Bf16>(heads * 512);
    sparse_prefill({1, heads, combined, q.data(), workspace_.data(), list.data(), &both,
                    sink.data(), prefill.data()});
    SparseDecode d;
    d.tokens = 1, d.heads = heads, d.width = width, d.extra_width = extra_width;
    d.q = q.data(), d.window = window_.pages, d.indices = indices.data(), d.lens = &n;
    d.extra = extra_.pages, d.extra_indices = extra_indices.data(), d.extra_lens = &m;
    d.sink = sink.data(), d.out = decode.data();
    sparse_decode(d);
    ASSERT_TRUE(same_bits(prefill, decode)) << window << " + " << extra;
    force_variant(Variant::kBaseline);
    sparse_decode(d);
    force_variant(Variant::kAvx2);
    ASSERT_TRUE(same_bits(prefill, decode)) << window << " + " << extra;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto expected = by_formula(q.data() + h * 512, workspace_.data(), keys, sink[h]);
      for (std::int64_t c = 0; c < 512; ++c) {
        const double got = to_float(prefill[h * 512 + c]);
        if (keys.empty() || h == 2) {
          ASSERT_EQ(prefill[h * 512 + c], 0);
        } else {
          ASSERT_NEAR(got, expected[c], std::abs(expected[c]) * 0x1p-8 + 1e-5) << h << " " << c;
        }
      }
    }
  }
}

TEST_F(SparseAttentionTest, ATokenAloneEqualsItselfInABatchAmongPoisonedRows) {
  fill();
  const std::int64_t tokens = 9, heads = 8, width = 256;
  const auto q = query(heads * tokens, heads * tokens);
  const auto sink = floats(heads);
  auto indices = poisoned<std::int32_t>(tokens * width);
  std::vector<std::int32_t> lens;
  std::vector<bool> used(workspace_.size() / 512, false);
  for (std::int64_t t = 0; t < tokens; ++t) {
    lens.push_back(static_cast<std::int32_t>(t == 0 ? 0 : below(width / 2)));
    for (std::int64_t i = 0; i < width; ++i) {
      // Behind the length: rows that exist, large indices, anything.
      const auto row = static_cast<std::int32_t>(below(150));
      indices[t * width + i] = i < lens[t] ? row : i % 2 == 0 ? 1 << 30 : row + 100;
      if (i < lens[t]) used[row] = true;
    }
  }
  std::vector<Bf16> clean(tokens * heads * 512), poisoned_rows(clean.size()), alone(heads * 512);
  SparsePrefill p{tokens,         heads,       width,       q.data(),    workspace_.data(),
                  indices.data(), lens.data(), sink.data(), clean.data()};
  sparse_prefill(p);
  for (std::size_t row = 0; row < used.size(); ++row) {
    if (!used[row]) std::fill_n(workspace_.begin() + row * 512, 512, Bf16{0xFFFF});
  }
  p.out = poisoned_rows.data();
  sparse_prefill(p);
  EXPECT_TRUE(same_bits(clean, poisoned_rows));
  for (std::int64_t t = 0; t < tokens; ++t) {
    SparsePrefill one = p;
    one.tokens = 1, one.q += t * heads * 512, one.indices += t * width, one.lens += t;
    one.out = alone.data();
    sparse_prefill(one);
    ASSERT_TRUE(same_bits(alone.data(), clean.data() + t * heads * 512, heads * 512)) << t;
  }
}

// vllm-project/vllm#57432: keys that padding adds to a list must weigh nothing.
TEST_F(SparseAttentionTest, ConstantValuesStayExactlyOneUnderPadding) {
  const std::int64_t heads = 64, valid = 133;
  std::vector<Bf16> ones((valid + 1) * 512, to_bf16(1));
  std::fill_n(ones.begin() + valid * 512, 512, Bf16{0xFFFF});
  const auto q = query(heads, heads);
  const std::vector<float> sink(heads, -kInfinity);
  for (const std::int64_t width : {133, 192, 256}) {
    std::vector<std::int32_t> indices(width, -1);
    for (std::int64_t i = 0; i < valid; ++i) indices[i] = static_cast<std::int32_t>(i);
    for (const std::int64_t len : {valid, width}) {
      const auto n = static_cast<std::int32_t>(len);
      auto out = poisoned<Bf16>(heads * 512);
      sparse_prefill(
          {1, heads, width, q.data(), ones.data(), indices.data(), &n, sink.data(), out.data()});
      for (const Bf16 v : out) ASSERT_EQ(to_float(v), 1.0F) << width;
    }
  }
}

TEST_F(SparseAttentionTest, HeadsOfZerosAreTheMeanAndTheirSinkIsTheirOwn) {
  fill();
  const std::int64_t heads = 4;
  auto q = query(0, heads);
  q[512 * 2 + 9] = 0x8000;  // -0: scores equal in value, a line of its own
  const std::vector<float> sink{-kInfinity, 0, -kInfinity, kInfinity};
  const std::vector<std::int32_t> indices{3, 5, 6};
  const std::int32_t len = 3;
  std::vector<Bf16> out(heads * 512);
  sparse_prefill(
      {1, heads, 3, q.data(), workspace_.data(), indices.data(), &len, sink.data(), out.data()});
  for (std::int64_t c = 0; c < 512; ++c) {
    float sum = 0;
    for (const std::int32_t k : indices) sum += to_float(workspace_[k * 512 + c]);
    ASSERT_EQ(out[c], to_bf16(sum / 3));
    ASSERT_EQ(out[512 + c], to_bf16(sum / 4));
    ASSERT_EQ(out[2 * 512 + c], out[c]);
    ASSERT_EQ(out[3 * 512 + c], 0);
  }
}

TEST_F(SparseAttentionTest, LengthsOutsideTheWidthAreClamped) {
  fill();
  const auto q = query(1, 1);
  const float sink = 0;
  const std::vector<std::int32_t> indices{1, 2};
  std::vector<Bf16> expected(512), out(512);
  std::int32_t len = 2;
  SparsePrefill p{
      1, 1, 2, q.data(), workspace_.data(), indices.data(), &len, &sink, expected.data()};
  sparse_prefill(p);
  len = 1000;
  p.out = out.data();
  sparse_prefill(p);
  EXPECT_TRUE(same_bits(out, expected));
  len = -5;
  sparse_prefill(p);
  for (const Bf16 v : out) ASSERT_EQ(v, 0);
}

}  // namespace
}  // namespace warmgate::kernels::cpu
