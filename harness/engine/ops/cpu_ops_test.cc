// From tensors to kernels: strides, block scales, shards, rows that are picked, and what is
// refused.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/metadata_lists.h"
#include "harness/engine/ops/sparse_attention.h"
#include "harness/engine/testing.h"
#include "kernels/cpu/formats.h"

namespace warmgate::engine::ops {
namespace {

namespace formats = warmgate::kernels::cpu;

const Device& host() { return device_named("cpu"); }

/// A tensor with memory of its own, block scales behind it.
struct Held {
  Tensor t;
  std::vector<std::uint8_t> bytes;
  Held(DType dtype, Shape shape) : t(make_tensor(dtype, shape)) {
    bytes.assign(static_cast<std::size_t>(t.payload_bytes() + scale_bytes(t)), 0);
    t.address = reinterpret_cast<std::uintptr_t>(bytes.data());
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  std::vector<T> values() {
    return {as<T>(), as<T>() + t.elements()};
  }
};

class CpuOps : public ::testing::Test {
 protected:
  CpuOps() {
    const auto seed = std::random_device()();
    std::printf("seed %u\n", seed);
    random_.seed(seed);
  }
  Held bf16(Shape shape) {
    Held out(DType::kBf16, shape);
    for (std::int64_t i = 0; i < out.t.elements(); ++i)
      out.as<std::uint16_t>()[i] = formats::to_bf16(uniform_(random_));
    return out;
  }
  /// e4m3 values or nibbles, with scales that differ from block to block.
  Held scaled(DType dtype, Shape shape) {
    Held out(dtype, shape);
    const auto values = static_cast<std::size_t>(out.t.payload_bytes());
    for (std::size_t i = 0; i < out.bytes.size(); ++i) {
      const auto draw = static_cast<std::uint8_t>(random_());
      // No NaN among the values; scales 2^-3 .. 2^4.
      out.bytes[i] = i >= values ? static_cast<std::uint8_t>(124 + draw % 8)
                     : dtype == DType::kFp8 && (draw & 0x7F) == 0x7F ? std::uint8_t{0}
                                                                     : draw;
    }
    return out;
  }
  std::mt19937 random_;
  std::uniform_real_distribution<float> uniform_{-1, 1};
};

TEST_F(CpuOps, RowsOfALargerMatrixKeepTheirScales) {
  Held whole = scaled(DType::kFp8, {384, 256}), x = bf16({3, 256});
  Held all(DType::kFp32, {3, 384}), part(DType::kFp32, {3, 200});
  run(Gemm{"g", x.t, whole.t, all.t}, host());
  const Gemm rows{"g", x.t, whole.t.slice(128, 200), part.t, whole.t};
  ASSERT_FALSE(can_run(rows));
  run(rows, host());
  for (int t = 0; t < 3; ++t) {
    for (int o = 0; o < 200; ++o)
      ASSERT_EQ(part.as<float>()[t * 200 + o], all.as<float>()[t * 384 + 128 + o]) << t << ' ' << o;
  }
  EXPECT_NE(all.as<float>()[128], all.as<float>()[0]);
  // Rows that do not begin with a block of scales.
  const auto refused = can_run(Gemm{"g", x.t, whole.t.slice(64, 200), part.t, whole.t});
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->find("64"), std::string::npos);
}

TEST_F(CpuOps, ShardsOfTheEmbeddingAddUpToIt) {
  Held table = bf16({10, 64}), ids(DType::kI64, {4}), out(DType::kBf16, {4, 64});
  for (const std::int64_t i : {0, 1, 2, 3}) ids.as<std::int64_t>()[i] = i * 3;
  run(Embed{ids.t, table.t, out.t}, host());
  const auto whole = out.values<std::uint16_t>();
  std::vector<float> sum(4 * 64, 0);
  for (const std::int64_t first : {0, 5}) {
    run(Embed{ids.t, table.t.slice(first, 5), out.t, first}, host());
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += formats::to_float(out.as<std::uint16_t>()[i]);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], formats::to_float(whole[i])) << i;
}

TEST_F(CpuOps, ExpertsStandInByTheSharedOneOrTheFirst) {
  const std::int64_t hidden = 64, inter = 32;
  Held x = bf16({2, hidden}), gate = bf16({3, hidden}), y(DType::kBf16, {2, hidden});
  Held w13 = scaled(DType::kFp4, {3, 2 * inter, hidden}),
       w2 = scaled(DType::kFp4, {3, hidden, inter});
  Held shared13 = scaled(DType::kFp8, {2 * inter, hidden}),
       shared2 = scaled(DType::kFp8, {hidden, inter});
  run(Moe{1, 0, x.t, gate.t, w13.t, w2.t, y.t}, host());
  const auto first = y.values<std::uint16_t>();
  // Expert 0 as matrices of their own.
  Held one13(DType::kFp4, {2 * inter, hidden}), one2(DType::kFp4, {hidden, inter});
  const auto copy_first = [](Held& to, Held& from) {
    const auto values = static_cast<std::size_t>(to.t.payload_bytes());
    std::copy_n(from.bytes.begin(), values, to.bytes.begin());
    std::copy_n(from.bytes.begin() + from.t.payload_bytes(), to.bytes.size() - values,
                to.bytes.begin() + static_cast<std::ptrdiff_t>(values));
  };
  copy_first(one13, w13);
  copy_first(one2, w2);
  run(Moe{1, 1, x.t, gate.t, w13.t, w2.t, y.t, one13.t, one2.t}, host());
  EXPECT_EQ(y.values<std::uint16_t>(), first);
  run(Moe{1, 1, x.t, gate.t, w13.t, w2.t, y.t, shared13.t, shared2.t}, host());
  EXPECT_NE(y.values<std::uint16_t>(), first);
}

TEST_F(CpuOps, PickedRowsAndTheirBounds) {
  Held x = bf16({5, 8}), out(DType::kBf16, {2, 8});
  const std::vector<std::int64_t> picked = {4, 1};
  run(SelectRows{x.t, out.t, picked}, host());
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(out.as<std::uint16_t>()[i], x.as<std::uint16_t>()[4 * 8 + i]);
    EXPECT_EQ(out.as<std::uint16_t>()[8 + i], x.as<std::uint16_t>()[8 + i]);
  }
  run(SelectRows{x.t, out.t}, host());  // the first ones
  EXPECT_EQ(out.as<std::uint16_t>()[8], x.as<std::uint16_t>()[8]);
  for (const auto& bad : std::vector<std::vector<std::int64_t>>{{0, 5}, {-1, 0}, {0, 1, 2}, {0}})
    EXPECT_TRUE(can_run(SelectRows{x.t, out.t, bad}));
}

TEST_F(CpuOps, TheBiasOfTheDraftHeadIsAddedToTheRowOfItsPosition) {
  const std::int64_t vocab = 16, rank = 8;
  Held w1 = bf16({vocab, rank}), w2 = bf16({vocab, rank}), previous(DType::kI64, {2});
  Held base(DType::kFp32, {5, vocab}), logits(DType::kFp32, {2, vocab});
  for (std::int64_t i = 0; i < base.t.elements(); ++i)
    base.as<float>()[i] = static_cast<float>(100 * (i / vocab));
  previous.as<std::int64_t>()[0] = 3;
  previous.as<std::int64_t>()[1] = 7;
  // Blocks of three, the second one shorter: its third row is its last.
  run(MarkovBias{previous.t, w1.t, w2.t, logits.t, base.t, 3, 2}, host());
  for (int b = 0; b < 2; ++b) {
    for (int v = 0; v < vocab; ++v) {
      double dot = b == 0 ? 200 : 400;
      for (int k = 0; k < rank; ++k) {
        const int id = b == 0 ? 3 : 7;
        dot += double{formats::to_float(w1.as<std::uint16_t>()[id * rank + k])} *
               double{formats::to_float(w2.as<std::uint16_t>()[v * rank + k])};
      }
      ASSERT_NEAR(logits.as<float>()[b * vocab + v], dot, 1e-3) << b << ' ' << v;
    }
  }
}

TEST_F(CpuOps, CopiesFromTheHost) {
  Held to(DType::kI32, {4});
  const std::vector<std::int32_t> from = {1, 2, 3, 4};
  run(upload(to.t, std::span<const std::int32_t>(from)), host());
  EXPECT_EQ(to.values<std::int32_t>(), from);
  EXPECT_TRUE(can_run(upload(to.t, std::span<const std::int32_t>(from).first(3))));
  EXPECT_EQ(account(upload(to.t, std::span<const std::int32_t>(from))).bytes, 16);
  EXPECT_THROW(run(Upload{to.t, {}}, host()), std::logic_error);

  Held slots(DType::kI64, {4});
  const std::vector<std::int64_t> two = {5, 6}, five(5, 1);
  SlotMapping mapping{{"m", 2, {}, {}, slots.t, {}}, two};
  run(mapping, host());
  EXPECT_EQ(slots.values<std::int64_t>(), (std::vector<std::int64_t>{5, 6, -1, -1}));
  mapping.slots = five;
  EXPECT_THROW(run(mapping, host()), std::logic_error);
}

struct Unknown {
  static constexpr std::string_view kernel = "sing";
};

TEST_F(CpuOps, WhatADeviceLacksIsSaid) {
  const auto said = [](auto&& work) {
    try {
      work();
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(said([] { run(Unknown{}, host()); }), "no sing for device cpu");
  Held x = bf16({1, 8});
  EXPECT_EQ(said([&] { run(ZeroFill{x.t}, accounting_device()); }), "no zero_fill for device meta");
}

}  // namespace
}  // namespace warmgate::engine::ops
