// One model over 1, 2, 4 and 8 processes: the same logits within the rounding of the partial sums,
// the same tokens wherever the largest logit leads by more than that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/engine/parallel/rank_processes.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

using testing::executed;

constexpr std::size_t kVocab = 253;  // no number of ranks divides it: the last shards are short
constexpr std::size_t kTokens = 8;
constexpr std::int64_t kPrompt = 270;
/// Row error ‖a − b‖₂ / ‖b‖₂ of logits. Sums over ranks round parts and sum to bf16, half of 2^-8
/// at most. Where values are then rounded to e4m3 (window keys, compressed keys, output
/// projection), of a step of 2^-3 to 2^-4 of the value, a difference d makes one of 2^4·d values
/// jump by a step: sqrt(d·2^-4) of the norm, 2^-6.5 for d = 2^-9. Four such places behind each
/// other double it.
constexpr double kLimit = 1.0 / 32;

/// Hands on to collectives that somebody else owns.
class Borrowed final : public Collectives {
 public:
  explicit Borrowed(Collectives& c) : c_(c) {}
  int rank() const override { return c_.rank(); }
  int world() const override { return c_.world(); }
  std::int64_t all_reduce(std::string_view name, std::int64_t bytes) override {
    return c_.all_reduce(name, bytes);
  }
  std::int64_t all_gather(std::string_view name, std::int64_t bytes) override {
    return c_.all_gather(name, bytes);
  }
  std::int64_t all_reduce(std::string_view name, std::span<std::byte> data, Element e) override {
    return c_.all_reduce(name, data, e);
  }
  std::int64_t all_gather(std::string_view name, std::span<const std::byte> mine,
                          std::span<std::byte> all) override {
    return c_.all_gather(name, mine, all);
  }
  std::int64_t barrier(std::string_view name) override { return c_.barrier(name); }
  std::int64_t all_min(std::string_view name, std::int64_t value) override {
    return c_.all_min(name, value);
  }
  void abandon(std::string_view why) override { c_.abandon(why); }

 private:
  Collectives& c_;
};

scenario::Resolved config_of(int world) {
  auto config = executed({0, 4, 128});
  config.model.num_attention_heads = 8;
  config.model.o_groups = 8;
  config.model.moe_intermediate_size = 72;  // 9 a rank of 8: gate and up are cut off any boundary
  config.model.vocab_size = kVocab;
  config.limits.max_model_len = 512;
  config.limits.max_num_batched_tokens = 200;
  config.parallel.tp = world;
  return config;
}

/// The last row of the logits of each step.
class LastLogits final : public testing::Watcher {
 public:
  std::vector<float> rows;
  using Watcher::after;
  void after(const LayerRef&, const ops::Sample& op) override {
    const auto* last = reinterpret_cast<const float*>(op.logits.address) +
                       (op.logits.rows() - 1) * op.logits.strides[0];
    rows.insert(rows.end(), last, last + op.logits.last());
  }
};

struct Stream {
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(kTokens);  // sampled
  std::vector<float> logits = std::vector<float>(kTokens * kVocab);    // sampled from
  bool operator==(const Stream&) const = default;
};
/// What one rank says: a stream that goes on with given tokens, one that goes on with its own.
struct Said {
  Stream forced, free;
};

/// One rank's model, and requests of a prompt of 270 tokens in two chunks, then one token a step.
class Server {
 public:
  explicit Server(Collectives& c)
      : rank_(config_of(c.world()), 1, std::make_unique<Borrowed>(c)), model_(rank_.context) {
    rank_.recorder.phase_begin("load");
    model_.load_target();
    rank_.recorder.phase_end("ok");
    rank_.recorder.phase_begin("serve");
    model_.init_kv(model_.plan_kv(*rank_.config.limits.kv_pool_bytes));
    rank_.context.observer = &watcher_;
  }
  ~Server() { rank_.recorder.phase_end("ok"); }

  /// Goes on with `forced`, or, where it is empty, with whatever was sampled.
  Stream serve(std::int64_t row, std::uint64_t seed, const std::vector<std::int64_t>& forced) {
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> ids;
    for (std::int64_t p = 0; p < kPrompt; ++p)
      ids.push_back(static_cast<std::int64_t>(random() % kVocab));
    step(row, ids, 0, 200);
    watcher_.rows.clear();
    Stream out;
    for (std::size_t i = 0; i < kTokens; ++i) {
      const auto n = static_cast<std::int64_t>(i);
      out.ids[i] = i == 0 ? step(row, ids, 200, kPrompt - 200) : step(row, ids, kPrompt + n - 1, 1);
      ids.push_back(forced.empty() ? out.ids[i] : forced[i]);
    }
    out.logits = watcher_.rows;
    return out;
  }

 private:
  std::int64_t step(std::int64_t row, const std::vector<std::int64_t>& ids, std::int64_t computed,
                    std::int64_t query) {
    if (!model_.grow_request(row, computed + query)) throw std::runtime_error("no blocks");
    BatchRequest part{row, computed, query};
    part.ids = {ids.begin() + computed, ids.begin() + computed + query};
    model_.step({{part}, false}, false);
    return model_.sampled()[0];
  }
  testing::Rank rank_;
  EngineModel model_;
  LastLogits watcher_;
};

std::string packed(const Stream& s) {
  std::string out(reinterpret_cast<const char*>(s.ids.data()), s.ids.size() * 8);
  return out.append(reinterpret_cast<const char*>(s.logits.data()), s.logits.size() * 4);
}

std::vector<Said> run(int world, std::uint64_t seed, const std::vector<std::int64_t>& forced) {
  const auto body = [&](Collectives& c) {
    Server server(c);
    return packed(server.serve(0, seed, forced)) + packed(server.serve(1, seed, {}));
  };
  std::vector<Said> out;
  for (const test::Outcome& outcome : test::run_ranks(world, 60'000, test::same(world, body))) {
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    Said said;
    std::size_t at = 0;
    const auto take = [&](auto& values) {
      const std::size_t bytes = values.size() * sizeof values[0];
      if (outcome.code == 0 && at + bytes <= outcome.said.size())
        std::memcpy(values.data(), outcome.said.data() + at, bytes);
      at += bytes;
    };
    for (Stream* stream : {&said.forced, &said.free}) take(stream->ids), take(stream->logits);
    EXPECT_TRUE(outcome.code != 0 || outcome.said.size() == at);
    out.push_back(std::move(said));
  }
  return out;
}

struct Row {
  double error = 0, most = 0;  // ‖a − b‖/‖b‖, largest |a − b|
  double margin = 0;           // of b's largest logit over its second
};
Row compare(const float* a, const float* b) {
  Row out;
  double difference = 0, norm = 0;
  float first = -INFINITY, second = -INFINITY;
  for (std::size_t v = 0; v < kVocab; ++v) {
    const double d = std::fabs(static_cast<double>(a[v]) - b[v]);
    difference += d * d;
    norm += static_cast<double>(b[v]) * b[v];
    out.most = std::max(out.most, d);
    second = std::max(second, std::min(first, b[v]));
    first = std::max(first, b[v]);
  }
  out.error = std::sqrt(difference / norm);
  out.margin = first - second;
  return out;
}

TEST(TensorParallel, LogitsAgreeWithinTheStatedErrorAndStreamsWhereMarginsAreLarger) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Stream one = run(1, seed, {}).at(0).free;
  for (const float v : one.logits) ASSERT_TRUE(std::isfinite(v));
  for (const int world : {2, 4, 8}) {
    SCOPED_TRACE("tp " + std::to_string(world));
    const std::vector<Said> ranks = run(world, seed, one.ids);
    // The same tokens all along: errors of logits, and tokens where the margin is clear.
    const Stream& forced = ranks[0].forced;
    double worst = 0;
    std::size_t clear = 0, until = kTokens;
    for (std::size_t i = 0; i < kTokens; ++i) {
      const Row row = compare(forced.logits.data() + i * kVocab, one.logits.data() + i * kVocab);
      worst = std::max(worst, row.error);
      EXPECT_LE(row.error, kLimit) << "token " << i;
      if (row.margin > 2 * row.most) {
        ++clear;
        EXPECT_EQ(forced.ids[i], one.ids[i]) << "token " << i << ", margin " << row.margin;
      } else {
        until = std::min(until, i);
      }
    }
    EXPECT_GT(clear, kTokens / 4);  // else little was shown
    EXPECT_GT(worst, 0);            // partial sums round by themselves: nobody computed the whole
    std::printf("tp %d: worst row error %.2e, %zu of %zu margins clear\n", world, worst, clear,
                kTokens);
    // Left to itself, the stream is the same up to the first token that could go either way.
    for (std::size_t i = 0; i < until; ++i) EXPECT_EQ(ranks[0].free.ids[i], one.ids[i]);
    for (const Said& rank : ranks) {  // bit by bit the same on all ranks
      EXPECT_EQ(rank.forced, ranks[0].forced);
      EXPECT_EQ(rank.free, ranks[0].free);
    }
  }
}

}  // namespace
}  // namespace warmgate::engine
