// What ranks hold of the weights, put together, is what one rank holds.
#include "harness/engine/layers/weight_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "harness/engine/layers/loader.h"
#include "harness/engine/ops/gemm.h"
#include "harness/engine/phases/random_config.h"
#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

/// A rank that only says which one it is.
class Posing final : public Collectives {
 public:
  Posing(int rank, int world) : rank_(rank), world_(world) {}
  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::int64_t all_reduce(std::string_view, std::int64_t) override { return 0; }
  std::int64_t all_gather(std::string_view, std::int64_t) override { return 0; }
  std::int64_t all_reduce(std::string_view, std::span<std::byte>, Element) override { return 0; }
  std::int64_t all_gather(std::string_view, std::span<const std::byte>,
                          std::span<std::byte>) override {
    return 0;
  }
  std::int64_t barrier(std::string_view) override { return 0; }
  std::int64_t all_min(std::string_view, std::int64_t value) override { return value; }
  void abandon(std::string_view) override {}

 private:
  int rank_, world_;
};

std::array<float, 256> e4m3_values() {
  std::array<float, 256> out{};
  for (int v = 0; v < 256; ++v) {
    const int exponent = v >> 3 & 15, fraction = v & 7;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    if ((v & 127) == 127) value = NAN;
    out[static_cast<std::size_t>(v)] = v & 128 ? -value : value;
  }
  return out;
}

/// The first matrix of w as floats, read byte by byte.
std::vector<float> values_of(const Tensor& w) {
  static const std::array<float, 256> e4m3 = e4m3_values();
  const auto* data = reinterpret_cast<const std::uint8_t*>(w.address);
  const std::uint8_t* scales = data + w.payload_bytes();
  const std::int64_t columns = w.last(), rows = w.rank == 1 ? 1 : w.dim(w.rank - 2);
  const std::int64_t count = rows * columns, across = ceil_div(columns, 128);
  std::vector<float> out(static_cast<std::size_t>(count));
  float* to = out.data();
  if (w.dtype == DType::kFp32) std::memcpy(to, data, static_cast<std::size_t>(count) * 4);
  if (w.dtype == DType::kBf16) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(reinterpret_cast<char*>(to + i) + 2, data + 2 * i, 2);
  }
  if (w.dtype == DType::kFp8) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t begin = 0; begin < columns; begin += 128) {
        const float scale = std::ldexp(1.0f, scales[r / 128 * across + begin / 128] - 127);
        const std::int64_t end = std::min(columns, begin + 128);
        for (std::int64_t i = r * columns + begin; i < r * columns + end; ++i)
          to[i] = e4m3[data[i]] * scale;
      }
    }
  }
  return out;
}

struct Loaded {
  Loaded(const scenario::Resolved& config, Kind kind, int rank_in)
      : rank(config, 1, std::make_unique<Posing>(rank_in, static_cast<int>(config.parallel.tp))),
        dims(make_dims(config)) {
    load_weights(rank.context, dims, "weights", 1,
                 layer_weights(dims, rank.config.model, kind, false), layer);
    load_weights(rank.context, dims, "weights", -1, model_weights(dims), model);
  }
  std::vector<float> of(WeightId id) const {
    const auto i = static_cast<std::size_t>(id);
    return values_of(layer[i].present() ? layer[i] : model[i]);
  }
  testing::Rank rank;
  Dims dims;
  WeightArray layer{}, model{};
};

scenario::Resolved config_of(std::int64_t tp, const std::string& dense = "fp8") {
  scenario::Resolved config = test::small_config();
  config.device = "cpu";
  config.model.o_groups = 8;
  config.model.vocab_size = 509;  // the last shard ends beyond it
  config.model.dense_dtype = dense;
  config.parallel.tp = tp;
  config.seed = 5;
  return config;
}

using Values = std::vector<float>;

/// Columns of parts, side by side, as far as the whole goes.
Values side_by_side(const std::vector<Values>& parts, std::size_t rows, std::size_t columns) {
  Values out;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t p = 0, c = 0; p < parts.size(); ++p) {
      const std::size_t width = parts[p].size() / rows;
      for (std::size_t i = 0; i < width; ++i, ++c) {
        if (c < columns) {
          out.push_back(parts[p][r * width + i]);
        } else {
          EXPECT_EQ(parts[p][r * width + i], 0);
        }
      }
    }
  }
  return out;
}

class Shards : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(Shards, TogetherAreTheWhole) {
  const std::int64_t tp = GetParam();
  for (const char* dense : {"fp8", "bf16"}) {
    if (tp > 2 && std::string(dense) == "bf16") continue;  // one world is enough for that
    const Loaded whole(config_of(1, dense), Kind::kC4a, 0);
    std::vector<std::unique_ptr<Loaded>> ranks;
    for (int r = 0; r < tp; ++r)
      ranks.push_back(std::make_unique<Loaded>(config_of(tp, dense), Kind::kC4a, r));
    const auto parts = [&](WeightId id) {
      std::vector<Values> out;
      for (const auto& rank : ranks) out.push_back(rank->of(id));
      return out;
    };
    const auto stacked = [&](WeightId id) {
      Values out;
      for (const Values& part : parts(id)) out.insert(out.end(), part.begin(), part.end());
      return out;
    };
    using enum WeightId;
    EXPECT_EQ(stacked(kWqB), whole.of(kWqB));
    EXPECT_EQ(stacked(kWoA), whole.of(kWoA));
    EXPECT_EQ(side_by_side(parts(kWoB), 512, 1024), whole.of(kWoB));
    EXPECT_EQ(side_by_side(parts(kSharedW2), 512, 256), whole.of(kSharedW2));
    Values gate, up;
    for (const Values& part : parts(kSharedW13)) {
      const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
      gate.insert(gate.end(), part.begin(), middle);
      up.insert(up.end(), middle, part.end());
    }
    gate.insert(gate.end(), up.begin(), up.end());
    EXPECT_EQ(gate, whole.of(kSharedW13));
    for (const WeightId id : {kEmbed, kLmHead}) {
      Values rows = stacked(id), wanted = whole.of(id);
      for (std::size_t i = wanted.size(); i < rows.size(); ++i) EXPECT_EQ(rows[i], 0);
      rows.resize(wanted.size());
      EXPECT_EQ(rows, wanted);
    }
    const auto heads = static_cast<std::ptrdiff_t>(8 / tp);
    Values sinks;
    for (const Values& part : parts(kAttnSink)) {
      ASSERT_EQ(part.size(), 64u);
      sinks.insert(sinks.end(), part.begin(), part.begin() + heads);
      for (auto i = part.begin() + heads; i != part.end(); ++i) EXPECT_EQ(*i, -INFINITY);
    }
    const Values all = whole.of(kAttnSink);
    EXPECT_EQ(sinks, Values(all.begin(), all.begin() + 8));
    for (const WeightId id : {kFusedWqaWkv, kQNorm, kKvNorm, kCompressorWkvWgate, kCompressorApe,
                              kIndexerWqB, kIndexerWeightsProj, kFfnNorm}) {
      for (const auto& rank : ranks) EXPECT_EQ(rank->of(id), whole.of(id));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, Shards, ::testing::Values(2, 4, 8));

TEST(WeightValues, AreOfTheSizeThatKeepsActivationsSteady) {
  const Loaded loaded(config_of(1), Kind::kC4a, 0);
  const auto deviation = [&](WeightId id) {
    double squares = 0;
    const Values values = loaded.of(id);
    for (const float v : values) squares += static_cast<double>(v) * v;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  using enum WeightId;
  for (const auto& [id, inputs] : std::vector<std::pair<WeightId, double>>{{kFusedWqaWkv, 512},
                                                                           {kWqB, 128},
                                                                           {kWoB, 1024},
                                                                           {kSharedW2, 256},
                                                                           {kLmHead, 512},
                                                                           {kEmbed, 1}}) {
    EXPECT_GT(deviation(id) * std::sqrt(inputs), 0.5) << static_cast<int>(id);
    EXPECT_LT(deviation(id) * std::sqrt(inputs), 2) << static_cast<int>(id);
  }
}

TEST(WeightValues, DependOnSeedLayerAndName) {
  const std::uint64_t key = ops::weight_key(1, 2, "wq_b");
  EXPECT_EQ(key, ops::weight_key(1, 2, "wq_b"));
  EXPECT_NE(key, ops::weight_key(2, 2, "wq_b"));
  EXPECT_NE(key, ops::weight_key(1, 3, "wq_b"));
  EXPECT_NE(key, ops::weight_key(1, 2, "wo_b"));
  EXPECT_NE(ops::weight_key(0, 1, ""), ops::weight_key(1, 0, ""));
}

TEST(WeightValues, RoutedExpertsAreNotTouchedBesideASharedOne) {
  for (const std::int64_t shared : {1, 0}) {
    auto config = config_of(1);
    config.model.n_shared_experts = shared;
    const Loaded loaded(config, Kind::kSwaOnly, 0);
    const Tensor& w = loaded.layer[static_cast<std::size_t>(WeightId::kExpertsW13)];
    const auto* values = reinterpret_cast<const std::uint8_t*>(w.address);
    const std::uint8_t* scales = values + w.payload_bytes();
    const std::int64_t one = w.payload_bytes() / w.rows();
    EXPECT_EQ(scales[0] == 0xFF, shared == 1);
    EXPECT_EQ(std::all_of(values, values + one, [](auto b) { return b == 0xFF; }), shared == 1);
    EXPECT_TRUE(std::all_of(values + one, values + 2 * one, [](auto b) { return b == 0xFF; }));
  }
}

TEST(RopeTables, GoAsFarAsPositionsDoAndFollowTheSeam) {
  const auto tables = [](const char* window_layers) {
    auto config = config_of(1);
    config.seams["rope.window_layers"] = window_layers;
    testing::Rank rank(config);
    const Dims dims = make_dims(rank.config);
    const TargetBuffers b = make_target_buffers(rank.memory, dims, false);
    fill_rope_tables(rank.context, dims, b.cos_sin_window, b.cos_sin_compressed);
    const auto row = [](const Tensor& t, std::int64_t r) {
      const auto* from = reinterpret_cast<const float*>(t.address) + r * 64;
      return Values(from, from + 64);
    };
    EXPECT_EQ(row(b.cos_sin_window, 0)[0], 1);
    EXPECT_TRUE(std::isnan(row(b.cos_sin_window, 4096)[0]));  // max_model_len
    EXPECT_FALSE(std::isnan(row(b.cos_sin_compressed, 4095)[63]));
    return std::pair(row(b.cos_sin_window, 1000), row(b.cos_sin_compressed, 1000));
  };
  const auto yarn = tables("yarn"), plain = tables("plain");
  EXPECT_NE(yarn.first, plain.first);
  EXPECT_EQ(yarn.second, plain.second);
  // The slowest pair, 31, turns by theta^(-62/64); interpolated, 11/13 of the way from pair 20 to
  // pair 33 (where 32 turns and one turn fit 65536 positions) to a sixteenth of that.
  const double turn = std::pow(10000, -62.0 / 64);
  EXPECT_NEAR(plain.first[63], std::sin(1000 * turn), 1e-6);
  EXPECT_NEAR(yarn.first[63], std::sin(1000 * turn * (2.0 / 13 + 11.0 / 13 / 16)), 1e-6);
}

}  // namespace
}  // namespace warmgate::engine
