#include "harness/engine/jit/kernel_domain.h"

#include <random>

#include "harness/engine/layers/batch_split.h"
#include "harness/engine/layers/dims.h"
#include "harness/engine/layers/indexer_plan.h"
#include "harness/engine/layers/metadata.h"
#include "harness/engine/layers/prefill_plan.h"
#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

using scenario::Resolved;

Resolved with_rev_a_seams(Resolved r, const char* ratios) {
  r.seams["warmup.chunk_ratios"] = ratios;
  r.seams["warmup.chunk_starts"] = "zero_and_one";
  r.seams["warmup.combine_rows"] = "fixed";
  r.seams["warmup.combine_alignments"] = "fixed";
  r.seams["c128a.width"] = "packed";
  return r;
}

template <typename CompileKey>
std::set<std::string> texts(const std::vector<CompileKey>& keys) {
  std::set<std::string> out;
  for (const auto& key : keys) out.insert(to_key(key).text());
  EXPECT_EQ(out.size(), keys.size()) << "a key is there twice";
  return out;
}

std::set<std::string> all_warmed(const Resolved& r) {
  std::set<std::string> out = texts(warmup_compute_prefill(r));
  out.merge(texts(warmup_build_chunk(r)));
  out.merge(texts(warmup_combine(r)));
  return out;
}
std::set<std::string> all_reachable(const Resolved& r) {
  const KernelDomain domain(r);
  std::set<std::string> out = texts(reachable_compute_prefill(domain));
  out.merge(texts(reachable_build_chunk(domain)));
  out.merge(texts(reachable_combine(domain)));
  return out;
}

std::set<std::int64_t> chunk_ratios(const Resolved& r) {
  std::set<std::int64_t> out;
  for (const auto& key : warmup_build_chunk(r)) out.insert(key.compress_ratio);
  return out;
}

TEST(WarmupKeys, CountsOfTheModelledEngine) {
  for (const auto& [seqs, count] : {std::pair{256, 9}, {1024, 11}, {1, 1}, {300, 10}}) {
    Resolved r = testing::flash();
    r.limits.max_num_seqs = seqs;
    EXPECT_EQ(warmup_compute_prefill(r).size(), static_cast<std::size_t>(count)) << seqs;
  }
  Resolved narrow = testing::flash();
  narrow.limits.max_num_batched_tokens = 8;
  EXPECT_EQ(warmup_compute_prefill(narrow).size(), 4u);

  EXPECT_EQ(warmup_build_chunk(with_rev_a_seams(testing::flash(), "config_clamped")).size(), 36u);
  EXPECT_EQ(warmup_build_chunk(with_rev_a_seams(testing::flash(), "config_raw")).size(), 36u);
  EXPECT_EQ(warmup_combine(with_rev_a_seams(testing::flash(), "config_clamped")).size(), 12u);
}

TEST(WarmupKeys, ZeroRatiosOfTheConfigBecomeKeysOnlyUnclamped) {
  const Resolved model = testing::small({0, 0, 4, 128, 0});
  const auto raw = warmup_build_chunk(with_rev_a_seams(model, "config_raw"));
  EXPECT_EQ(raw.size(), 36u);
  EXPECT_EQ(
      std::count_if(raw.begin(), raw.end(), [](const auto& k) { return k.compress_ratio == 0; }),
      12);
  const Resolved clamped = with_rev_a_seams(model, "config_clamped");
  EXPECT_EQ(chunk_ratios(clamped), (std::set<std::int64_t>{1, 4, 128}));
  EXPECT_EQ(warmup_build_chunk(clamped).size(), 36u);
  EXPECT_EQ(chunk_ratios(model), (std::set<std::int64_t>{4}));
  EXPECT_TRUE(warmup_build_chunk(testing::small({0, 128})).empty());
}

TEST(WarmupKeys, CombineRowsFollowTheModelOrAreFixed) {
  const auto fixed = texts(warmup_combine(with_rev_a_seams(testing::pro(), "config_clamped")));
  EXPECT_TRUE(
      fixed.count("CombineTopkSwaIndices{COMPRESS_RATIO=1,TOP_K=0,PADDED_TOP_K=512,WINDOW_SIZE=128,"
                  "alignment=FFFF}"));
  // A window-only MTP layer behind a K = 1024 buffer: known to rev A's rows as (1, 0, 512) only.
  Resolved pro = testing::pro();
  testing::add_drafter(pro, "mtp", 1);
  const std::string gap =
      "CombineTopkSwaIndices{COMPRESS_RATIO=1,TOP_K=0,PADDED_TOP_K=1024,WINDOW_SIZE=128,alignment="
      "TTTT}";
  EXPECT_TRUE(all_reachable(pro).count(gap));
  EXPECT_TRUE(all_warmed(pro).count(gap));
  EXPECT_FALSE(all_warmed(with_rev_a_seams(pro, "config_clamped")).count(gap));
  EXPECT_FALSE(all_reachable(testing::pro()).count(gap)) << "no layer of Pro is window-only";
  EXPECT_FALSE(all_reachable(testing::pro()).count(fixed.empty() ? "" : *fixed.rbegin()));
}

TEST(KernelDomain, WidthsOfTheIndexTensor) {
  const auto widths = [](std::int64_t length, const char* seam) {
    Resolved r = testing::small({128});
    r.limits.max_model_len = length;
    r.seams["c128a.width"] = seam;
    return KernelDomain(r).c128a_widths;
  };
  using Widths = std::vector<std::int64_t>;
  EXPECT_EQ(widths(1048576, "packed"), (Widths{128, 256, 512, 1024, 2048, 4096, 8192}));
  EXPECT_EQ(widths(1048576, "full_stride"), (Widths{8192}));
  EXPECT_EQ(widths(65536, "packed"), (Widths{128, 256, 512}));
  EXPECT_EQ(widths(163840, "packed"), (Widths{128, 256, 512, 1024, 1280}));
  EXPECT_EQ(widths(131073, "packed"),
            (Widths{128, 256, 512, 1024}));  // 1152 wide, never needed whole
  EXPECT_EQ(widths(131073, "full_stride"), (Widths{1152}));
  EXPECT_EQ(widths(1, "packed"), (Widths{128}));
  EXPECT_EQ(widths(1, "full_stride"), (Widths{128}));
}

TEST(KernelDomain, SliceStartsFollowFromTheLogitsBudget) {
  const auto classes = [](std::int64_t length, std::int64_t tokens) {
    Resolved r = testing::flash();
    r.limits.max_model_len = length;
    r.limits.max_num_batched_tokens = tokens;
    return KernelDomain(r).slice_start_classes();
  };
  using Classes = std::vector<IntClass>;
  EXPECT_EQ(classes(1048576, 8192), (Classes{IntClass::kDiv16, IntClass::kAny}));
  EXPECT_EQ(classes(65536, 8192), (Classes{IntClass::kDiv16}));  // 8192 x 16384 logits just fit
  EXPECT_EQ(classes(65540, 8192), (Classes{IntClass::kDiv16, IntClass::kAny}));
  EXPECT_EQ(classes(1048576, 512), (Classes{IntClass::kDiv16}));
  EXPECT_EQ(classes(std::int64_t{1} << 30, 64),
            (Classes{IntClass::kDiv16, IntClass::kOne, IntClass::kAny}));
  EXPECT_EQ(classes(std::int64_t{1} << 30, 2), (Classes{IntClass::kDiv16, IntClass::kOne}));
}

/// Whatever the plans of a step make of it: every key that its launches ask for.
class Serving {
 public:
  explicit Serving(const Resolved& r) : config_(r), dims_(make_dims(r)) {
    for (std::int64_t i = 0; i < r.model.num_hidden_layers; ++i)
      kinds_.insert(kind_of_ratio(effective_ratio(r.model, i)));
    if (r.drafter.method == "mtp") kinds_.insert(Kind::kSwaOnly);
  }
  void step(const std::vector<BatchRequest>& batch, std::set<std::string>& keys) const {
    attention(batch, keys);
    if (kinds_.count(Kind::kC4a)) indexer(batch, keys);
  }

 private:
  struct Part {
    Split split;
    std::vector<std::int32_t> seq, query, gather;
    std::int64_t longest = 0;
  };
  Part prefills(const std::vector<BatchRequest>& batch, std::int64_t threshold,
                bool uniform) const {
    Part part{split_batch(batch, threshold, uniform), {}, {}, {}};
    for (std::size_t i = 0; i < batch.size(); ++i) {
      part.longest = std::max(part.longest, batch[i].computed + batch[i].query);
      if (i < static_cast<std::size_t>(part.split.decodes)) continue;
      part.seq.push_back(static_cast<std::int32_t>(batch[i].computed + batch[i].query));
      part.query.push_back(static_cast<std::int32_t>(batch[i].query));
      part.gather.push_back(static_cast<std::int32_t>(
          batch[i].query + std::min<std::int64_t>(batch[i].computed, dims_.window - 1)));
    }
    return part;
  }
  void attention(const std::vector<BatchRequest>& batch, std::set<std::string>& keys) const {
    const Part part = prefills(batch, dims_.decode_threshold(), false);
    if (part.seq.empty()) return;
    keys.insert(dispatch(ComputePrefillInputs{part.split.prefills}).text());
    for (const Kind kind : kinds_) {
      const std::int64_t ratio = ratio_of(kind);
      const std::int64_t compressed = ratio > 1 ? (dims_.max_model_len + ratio - 1) / ratio : 0;
      std::vector<PrefillChunk> chunks;
      plan_prefill_chunks(part.seq, part.gather, part.query, ratio,
                          4 * (compressed + dims_.window + dims_.max_tokens), chunks);
      const std::int64_t width =
          kind == Kind::kC128a
              ? c128a_width(dims_, part.longest, config_.seams.at("c128a.width") == "packed")
              : dims_.topk;
      for (const PrefillChunk& chunk : chunks) {
        const bool row = (part.split.decodes + chunk.begin) % 4 == 0;
        keys.insert(dispatch(CombineInputs{ratio, kind == Kind::kSwaOnly ? 0 : width, width,
                                           dims_.window, true, row, row, chunk.begin % 4 == 0})
                        .text());
      }
    }
  }
  void indexer(const std::vector<BatchRequest>& batch, std::set<std::string>& keys) const {
    for (const bool uniform : {true, false}) {
      const Part part = prefills(batch, dims_.indexer_threshold(), uniform);
      std::vector<IndexerChunk> chunks;
      plan_indexer_chunks(part.seq, part.query, 4, dims_.indexer_gather_rows(),
                          std::int64_t{512} << 20, chunks);
      for (const IndexerChunk& chunk : chunks) {
        keys.insert(dispatch(BuildChunkInputs{chunk.slice_start, chunk.slice_stop, 4,
                                              (part.split.decodes + chunk.begin) % 4 == 0})
                        .text());
      }
    }
  }
  const Resolved& config_;
  const Dims dims_;
  std::set<Kind> kinds_;
};

class Domain : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() %
                                     static_cast<std::uint64_t>(std::max<std::int64_t>(1, n)));
  }
  std::int64_t pick(const std::vector<std::int64_t>& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }
  /// Decodes first, then prefills; within S requests, B tokens, L positions.
  std::vector<BatchRequest> batch(const Resolved& r) {
    const auto& limits = r.limits;
    std::vector<BatchRequest> out;
    std::int64_t tokens = limits.max_num_batched_tokens;
    const std::int64_t requests = 1 + below(std::min<std::int64_t>(limits.max_num_seqs, 40)),
                       decodes = below(requests);
    while (tokens > 0 && static_cast<std::int64_t>(out.size()) < requests) {
      const bool decode = static_cast<std::int64_t>(out.size()) < decodes;
      std::int64_t query =
          decode ? 1 + below(2)
                 : pick({1, 2, 3, 15, 16, 17, 1 + below(40), 1 + below(tokens), tokens});
      query = std::min({query, tokens, limits.max_model_len});
      const std::int64_t room = limits.max_model_len - query;
      out.push_back({static_cast<std::int64_t>(out.size()),
                     pick({0, below(room + 1), room, std::min<std::int64_t>(room, below(300))}),
                     query});
      tokens -= query;
    }
    return out;
  }
  Resolved config() {
    std::vector<std::int64_t> ratios;
    for (std::int64_t i = 1 + below(5); i > 0; --i) ratios.push_back(pick({0, 1, 4, 128}));
    Resolved r = testing::small(
        ratios, pick({1, 127, 128, 129, 8192, 65536, 163840, 1048576, 1 + below(200000)}),
        pick({1, 2, 15, 16, 17, 512, 2048, 8192, 16384}), pick({1, 2, 3, 5, 6, 7, 16, 256, 1024}));
    r.model.index_topk = pick({512, 1024});
    r.seams["c128a.width"] = below(2) == 0 ? "packed" : "full_stride";
    const std::int64_t n = below(8);
    if (n > 0 && below(2) == 0) testing::add_drafter(r, below(2) == 0 ? "mtp" : "dspark", n);
    return r;
  }
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
};

TEST_F(Domain, DefaultWarmupCoversServingAndAsksForNothingElse) {
  for (int round = 0; round < 400; ++round) {
    const Resolved r = config();
    SCOPED_TRACE(::testing::Message()
                 << "seed " << seed_ << " round " << round << " L " << r.limits.max_model_len
                 << " B " << r.limits.max_num_batched_tokens << " S " << r.limits.max_num_seqs);
    const std::set<std::string> warmed = all_warmed(r);
    EXPECT_EQ(warmed, all_reachable(r));
    std::set<std::string> served;
    const Serving serving(r);
    for (int step = 0; step < 20; ++step) serving.step(batch(r), served);
    for (const std::string& key : served) EXPECT_TRUE(warmed.count(key)) << key;
    if (HasFailure()) break;
  }
}

// The other way round: what is called reachable can be reached.
TEST_F(Domain, ReachableKeysAreReached) {
  Resolved r = testing::small({0, 4, 128}, 70000, 8192, 16);
  r.seams["c128a.width"] = "packed";
  const std::set<std::string> reachable = all_reachable(r);
  std::set<std::string> served;
  const Serving serving(r);
  for (int step = 0; step < 100000 && served.size() < reachable.size(); ++step)
    serving.step(batch(r), served);
  for (const std::string& key : reachable)
    EXPECT_TRUE(served.count(key)) << key << " seed " << seed_;
}

}  // namespace
}  // namespace warmgate::engine
