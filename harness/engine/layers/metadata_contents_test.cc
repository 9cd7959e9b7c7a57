// What metadata tensors hold on a device that executes, against the plain definition of each,
// worked out from positions and block tables.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "harness/engine/layers/metadata.h"
#include "harness/engine/ops/metadata_lists.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

template <class T>
std::span<const T> values(const Tensor& t, std::int64_t count) {
  return {reinterpret_cast<const T*>(static_cast<std::uintptr_t>(t.address)),
          static_cast<std::size_t>(count)};
}
template <class T>
std::vector<T> row(const Tensor& t, std::int64_t i) {
  const auto all = values<T>(t, (i + 1) * t.last());
  return {all.end() - t.last(), all.end()};
}

/// A rank without a model: caches, builders, and steps told to the device as the model does.
class Contents : public ::testing::Test {
 protected:
  explicit Contents(scenario::Resolved config = testing::executed({0, 4, 128}))
      : rank_(std::move(config)),
        exec_(rank_.context),
        dims_(make_dims(rank_.config)),
        modules_(cache_modules(dims_, {Kind::kSwaOnly, Kind::kC4a, Kind::kC128a})),
        groups_(group_caches(modules_)),
        cache_(rank_.memory, dims_, modules_, groups_,
               plan_kv_cache(dims_, modules_, groups_, 400'000'000)),
        inputs_(InputBuffers::make({rank_.memory, "b"}, dims_, "b")),
        site_(rank_.memory.site("activations", "test", Lifetime::kTransient)) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].cls == CacheClass::kFullMla) full_ = g;
      if (groups_[g].cls == CacheClass::kSwa) windows_.push_back(g);
    }
    builders_.emplace(rank_.memory, dims_, cache_, Role::kTarget, windows_, full_,
                      rank_.config.architectures.front());
  }

  void tell(const Batch& batch) {
    host_.build(batch, dims_);
    const LayerRef ref;
    execute(exec_, ref,
            ops::PrepareInputs{{"prepare_inputs", host_.tokens, inputs_.query_start,
                                inputs_.seq_lens, inputs_.ids, inputs_.positions},
                               host_.query_start,
                               host_.seq_lens,
                               host_.ids,
                               host_.device_positions});
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      cache_.write_slots(g, host_.tokens, [&](std::span<std::int64_t> slots) {
        for (std::size_t r = 0; r < host_.batch.size(); ++r) {
          fill_slots(table(g, r), cache_.tables().block_tokens(g), host_.batch[r].computed,
                     slots.subspan(static_cast<std::size_t>(host_.query_start[r]),
                                   static_cast<std::size_t>(host_.batch[r].query)));
        }
      });
      std::vector<std::int32_t> rows;
      for (std::size_t r = 0; r < host_.batch.size(); ++r) {
        std::vector<std::int32_t> one(table(g, r).begin(), table(g, r).end());
        one.resize(static_cast<std::size_t>(cache_.tables().columns(g)), 0);
        rows.insert(rows.end(), one.begin(), one.end());
      }
      exec_.copy(ref, "table",
                 ops::upload(cache_.table(g).slice(0, host_.requests),
                             std::span<const std::int32_t>(rows)));
      execute(exec_, ref,
              ops::SlotMapping{{"compute_slot_mapping",
                                host_.tokens,
                                inputs_.positions,
                                cache_.table(g),
                                cache_.slots(g),
                                {}},
                               cache_.host_slots(g)});
    }
  }
  std::span<const std::int32_t> table(std::size_t g, std::size_t r) {
    return cache_.tables().row(g, host_.batch[r].request);
  }
  std::int32_t slot(std::size_t g, std::size_t request, std::int64_t entry, std::int64_t rows) {
    const auto blocks = table(g, request);
    return static_cast<std::int32_t>(blocks[static_cast<std::size_t>(entry / rows)] * rows +
                                     entry % rows);
  }
  void check(const Batch& batch);
  void check_windows(const StepMetadata& step);
  void check_compressed(const StepMetadata& step);
  void check_indexer(const StepMetadata& step);

  testing::Rank rank_;
  Executor exec_;
  Dims dims_;
  std::vector<CacheModule> modules_;
  std::vector<CacheGroup> groups_;
  KvCache cache_;
  InputBuffers inputs_;
  DeviceMemory::Site site_;
  std::size_t full_ = 0;
  std::vector<std::size_t> windows_;
  std::optional<MetadataBuilders> builders_;
  StepHost host_;
};

void Contents::check_windows(const StepMetadata& step) {
  for (const SwaMetadata& swa : builders_->windows()) {
    const auto request = values<std::int32_t>(swa.token_to_req, host_.tokens);
    EXPECT_TRUE(std::equal(request.begin(), request.end(), host_.token_to_req.begin()));
    for (std::int64_t t = 0; t < host_.tokens; ++t) {
      const auto i = static_cast<std::size_t>(t);
      const auto r = static_cast<std::size_t>(host_.token_to_req[i]);
      const bool decode = t < step.split.decode_tokens;
      const std::int64_t at = decode ? t : t - step.split.decode_tokens;
      std::vector<std::int32_t> wanted;
      for (std::int64_t p = host_.swa_starts[i]; p <= host_.positions[i]; ++p)
        wanted.push_back(slot(swa.group(), r, p, 64));
      auto seen = row<std::int32_t>(decode ? swa.decode_indices() : swa.prefill_indices, at);
      const Tensor& lens = decode ? swa.decode_lens : swa.prefill_lens;
      ASSERT_EQ(values<std::int32_t>(lens, at + 1).back(), host_.swa_lens[i]) << t;
      seen.resize(wanted.size());
      ASSERT_EQ(seen, wanted) << t;
    }
    for (std::int64_t b = 0; b < step.split.prefills; ++b) {
      EXPECT_EQ(values<std::int32_t>(swa.gather_lens, b + 1).back(),
                host_.gather_lens[static_cast<std::size_t>(step.split.decodes + b)]);
    }
    if (step.split.decode_tokens > 0) {
      const auto lens = values<std::int32_t>(swa.decode_lens, dims_.max_tokens);
      for (std::int64_t t = step.split.decode_tokens; t < dims_.max_tokens; ++t)
        ASSERT_EQ(lens[static_cast<std::size_t>(t)], 0);
    }
  }
}

void Contents::check_compressed(const StepMetadata& step) {
  for (const SparseMetadata* sparse : {step.c4, step.c128}) {
    const auto seen = values<std::int64_t>(sparse->slots, dims_.max_tokens);
    const auto host = sparse->host_slots();
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), host.begin()));
  }
  for (std::int64_t t = 0; t < host_.tokens; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const std::int64_t entries = (host_.positions[i] + 1) / 128;
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(step.c128->width), -1);
    const bool decode = t < step.split.decode_tokens;
    for (std::int64_t j = 0; j < entries; ++j) {
      wanted[static_cast<std::size_t>(j)] =
          decode ? slot(full_, static_cast<std::size_t>(host_.token_to_req[i]), j, 2)
                 : static_cast<std::int32_t>(j);
    }
    if (decode) {
      ASSERT_EQ(row<std::int32_t>(step.c128->decode_indices, t), wanted) << t;
      ASSERT_EQ(values<std::int32_t>(step.c128->decode_lens, t + 1).back(), entries);
    } else {
      ASSERT_EQ(row<std::int32_t>(step.c128->prefill_indices, t - step.split.decode_tokens), wanted)
          << t;
    }
  }
}

void Contents::check_indexer(const StepMetadata& step) {
  const IndexerMetadata& indexer = *step.indexer;
  const std::int64_t decodes = indexer.split.decode_tokens;
  for (std::int64_t t = 0; t < decodes; ++t) {
    const auto i = static_cast<std::size_t>(t);
    ASSERT_EQ(values<std::int32_t>(indexer.context_lens, t + 1).back(),
              (host_.positions[i] + 1) / 4);
    const auto r = static_cast<std::size_t>(t / indexer.queries_a_row());
    const auto blocks = table(full_, static_cast<std::size_t>(host_.token_to_req[i]));
    auto seen = row<std::int32_t>(indexer.decode_table, static_cast<std::int64_t>(r));
    seen.resize(blocks.size());
    ASSERT_TRUE(std::equal(blocks.begin(), blocks.end(), seen.begin())) << t;
  }
  for (const IndexerChunk& chunk : indexer.chunks) {
    for (std::int64_t q = chunk.slice_start; q < chunk.slice_stop; ++q) {
      const std::int64_t in_prefill = chunk.token_begin + q;
      const auto i = static_cast<std::size_t>(decodes + in_prefill);
      std::int64_t before = 0;  // keys of the chunk's requests before this one
      for (auto r = indexer.split.decodes + chunk.begin; r < host_.token_to_req[i]; ++r)
        before += host_.seq_lens[static_cast<std::size_t>(r)] / 4;
      ASSERT_EQ(values<std::int32_t>(indexer.key_start, in_prefill + 1).back(), before);
      ASSERT_EQ(values<std::int32_t>(indexer.key_end, in_prefill + 1).back(),
                before + (host_.positions[i] + 1) / 4);
    }
  }
}

void Contents::check(const Batch& batch) {
  for (const BatchRequest& r : batch.requests)
    ASSERT_TRUE(cache_.tables().grow(r.request, r.computed + r.query));
  tell(batch);
  Activations scratch(rank_.memory, site_);
  const StepMetadata& step = builders_->build(exec_, host_, cache_, inputs_, scratch, false);
  check_windows(step);
  check_compressed(step);
  check_indexer(step);
}

TEST_F(Contents, AtTheBoundaries) {
  check({{{0, 0, 1}}, false});
  for (const std::int64_t p : {3, 4, 63, 64, 126, 127, 128, 255, 256, 300}) {
    check({{{3, p, 1}, {1, 0, p + 1}, {2, p, 5}}, false});
  }
}

TEST_F(Contents, OfRandomBatchesThatFollowEachOther) {
  const auto seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> rows(8);
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), random);
    Batch batch;
    const auto count = 1 + random() % 8;
    for (std::size_t r = 0; r < count; ++r) {
      const bool decode = r < count / 2;
      batch.requests.push_back({rows[r], static_cast<std::int64_t>(random() % 400),
                                decode ? 1 : 2 + static_cast<std::int64_t>(random() % 50)});
    }
    check(batch);
  }
}

scenario::Resolved drafting(const char* arch) {
  auto config = testing::executed({0, 4, 128});
  testing::add_drafter(config, "dspark", 7);
  config.architectures = {arch};
  config.seams["c128a.width"] = "packed";
  return config;
}
class Flattened : public Contents {
 protected:
  Flattened() : Contents(drafting("sm_90a")) {}
};
class Uniform : public Contents {
 protected:
  Uniform() : Contents(drafting("sm_100a")) {}
};
const Batch kSeveral{{{0, 100, 3}, {4, 7, 3}, {2, 500, 3}, {1, 30, 8}, {3, 200, 15}, {5, 9, 40}},
                     false};

TEST_F(Flattened, DecodesOfSeveralTokens) {
  check(kSeveral);
  EXPECT_EQ(builders_->current().indexer->queries_a_row(), 1);
}
TEST_F(Uniform, DecodesOfSeveralTokens) {
  check(kSeveral);
  EXPECT_EQ(builders_->current().indexer->queries_a_row(), 3);
  EXPECT_EQ(builders_->current().indexer->split.decodes, 3);
}

TEST_F(Contents, OfADummyStepPointNowhere) {
  check({{{0, 0, 200}}, false});  // leaves rows behind
  Batch dummy{{{0, 900, 1}, {1, 0, 200}}, true};
  host_.build(dummy, dims_);
  execute(exec_, LayerRef{},
          ops::PrepareInputs{{"prepare_inputs", host_.tokens, inputs_.query_start, inputs_.seq_lens,
                              inputs_.ids, inputs_.positions},
                             host_.query_start,
                             host_.seq_lens,
                             host_.ids,
                             host_.device_positions});
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<std::int64_t> none(static_cast<std::size_t>(dims_.max_tokens), -1);
    execute(exec_, LayerRef{},
            ops::SlotMapping{{"compute_slot_mapping",
                              host_.tokens,
                              inputs_.positions,
                              cache_.table(g),
                              cache_.slots(g),
                              {}},
                             none});
  }
  Activations scratch(rank_.memory, site_);
  const StepMetadata& step = builders_->build(exec_, host_, cache_, inputs_, scratch, false);
  for (const SwaMetadata& swa : builders_->windows()) {
    EXPECT_EQ(values<std::int32_t>(swa.decode_lens, 1)[0], 0);
    for (const auto valid : values<std::uint8_t>(swa.is_valid, host_.tokens)) EXPECT_EQ(valid, 0);
  }
  EXPECT_EQ(values<std::int32_t>(step.c128->decode_lens, 1)[0], 0);
  for (const auto slot : values<std::int64_t>(step.c4->slots, dims_.max_tokens))
    EXPECT_EQ(slot, -1);
}

}  // namespace
}  // namespace warmgate::engine
