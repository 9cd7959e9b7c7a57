// The bodies against the reference, on fresh random inputs and poisoned outputs.
#include "kernels/jit/host_kernels.h"

#include <random>

#include "kernels/jit/test_keys.h"
#include "kernels/reference/metadata.h"

namespace warmgate::jit {
namespace {

using reference::Request;
using Ints = std::vector<std::int32_t>;

constexpr std::int32_t kPoison = -77777777;

class HostKernels : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  template <typename T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<std::int64_t>(list.size()))];
  }
  std::vector<Request> requests(std::int64_t count, std::int64_t longest_query) {
    std::vector<Request> out;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t query = 1 + below(longest_query);
      const std::int64_t prefix =
          pick<std::int64_t>({0, 1, 3, 4, 126, 127, 128, 129, below(1000), below(20000)});
      out.push_back({query, prefix + query});
    }
    return out;
  }
  static InBuffer in(const Ints& v, int phase = 0) {
    return {v.data(), static_cast<std::int64_t>(v.size()), phase};
  }
  static OutBuffer out(Ints& v) { return {v.data(), static_cast<std::int64_t>(v.size())}; }
  static Ints locs(const std::vector<Request>& requests, std::int64_t origin = 0) {
    Ints v{static_cast<std::int32_t>(origin)};
    for (const Request& r : requests)
      v.push_back(v.back() + static_cast<std::int32_t>(r.query_len));
    return v;
  }
  static Ints lens(const std::vector<Request>& requests) {
    Ints v;
    for (const Request& r : requests) v.push_back(static_cast<std::int32_t>(r.seq_len));
    return v;
  }
  static std::vector<std::int64_t> wide(const Ints& v) { return {v.begin(), v.end()}; }

  std::mt19937_64 random_{std::random_device{}()};
  std::uint64_t seed_ = random_();
  void SetUp() override {
    RecordProperty("seed", std::to_string(seed_));
    random_.seed(seed_);
  }
};

TEST_F(HostKernels, ComputePrefillMetadata) {
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(seed_);
    const std::int64_t prefills = 1 + below(300), decodes = below(5);
    int block = 1;
    while (block < prefills) block *= 2;
    std::vector<Request> all = requests(decodes + prefills, 40);
    const Ints starts = locs(all), seq = lens(all);
    Ints gather(static_cast<std::size_t>(prefills), kPoison);
    const std::int32_t window = pick({1, 2, 64, 128});
    run_on_host(
        testing::compute_key(block),
        ComputePrefillLaunch{out(gather), in(starts), in(seq), static_cast<std::int32_t>(prefills),
                             static_cast<std::int32_t>(decodes), window},
        pick({1, 7, 32}));
    all.erase(all.begin(), all.begin() + decodes);
    EXPECT_EQ(wide(gather), reference::gather_lens(all, window));
  }
}

TEST_F(HostKernels, BuildPrefillChunkMetadata) {
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(seed_);
    const auto chunk = requests(1 + below(11), 60);
    const Ints starts = locs(chunk, below(500)), seq = lens(chunk);
    const std::int64_t tokens = starts.back() - starts.front();
    const std::int64_t start = below(tokens), stop = start + 1 + below(tokens - start);
    const int ratio = pick({1, 4, 128, 5});
    const std::int64_t world = pick({1, 1, 2, 3}), rank = below(world),
                       interleave = pick({1, 1, 4});
    const auto expected =
        reference::chunk_metadata(chunk, ratio, start, stop, {rank, world, interleave});
    Ints ks(static_cast<std::size_t>(stop - start), kPoison), ke = ks;
    Ints owners(expected.key_requests.size(), kPoison);
    const std::string dcp =
        std::to_string(rank) + "," + std::to_string(world) + "," + std::to_string(interleave);
    const bool aligned = below(2) == 0;
    run_on_host(
        testing::chunk_key("any", "any", ratio, aligned ? "T" : "F", dcp),
        BuildChunkLaunch{out(ks), out(ke), out(owners), in(starts), in(seq, aligned ? 0 : 3),
                         static_cast<std::int32_t>(start), static_cast<std::int32_t>(stop),
                         static_cast<std::int32_t>(chunk.size())},
        pick({1, 5, 32}));
    EXPECT_EQ(wide(ks), expected.key_starts);
    EXPECT_EQ(wide(ke), expected.key_ends);
    EXPECT_EQ(wide(owners), expected.key_requests);
  }
}

TEST_F(HostKernels, CombineTopkSwaIndices) {
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(seed_);
    const auto chunk = requests(1 + below(6), 12);
    const int ratio = pick({1, 4, 128}), top_k = ratio == 1 ? 0 : pick({3, 64, 512});
    const int window = pick({128, 16, 1});
    const auto gathered = reference::gather_lens(chunk, window);
    const Ints starts = locs(chunk, below(100)), seq = lens(chunk),
               gather(gathered.begin(), gathered.end());
    std::int64_t N = 0, M = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (ratio > 1) N = std::max(N, chunk[i].seq_len / ratio);
      M = std::max(M, gathered[i]);
    }
    M += N;
    const auto tokens = static_cast<std::size_t>(starts.back() - starts.front());
    const std::size_t stride = static_cast<std::size_t>(top_k + 3) / 4 * 4,
                      width = (static_cast<std::size_t>(top_k) + 255) / 128 * 128;
    Ints topk(tokens * stride);
    for (auto& v : topk) v = static_cast<std::int32_t>(below(1 << 20));
    Ints indices(tokens * width, kPoison), counts(tokens, kPoison);
    int padded = 1;
    while (padded < top_k) padded *= 2;
    const std::string alignment = pick<std::string>({"TTTT", "TFFT", "TTTF", "TFFF", "FFFF"});
    const auto phase = [&](int i) { return alignment[static_cast<std::size_t>(i)] == 'T' ? 0 : 1; };
    run_on_host(testing::combine_key(ratio, top_k, padded, alignment, window),
                CombineLaunch{out(indices), out(counts), in(topk, phase(0)), in(starts, phase(1)),
                              in(seq, phase(2)), in(gather, phase(3)),
                              static_cast<std::int32_t>(width), static_cast<std::int32_t>(stride),
                              static_cast<std::int32_t>(M), static_cast<std::int32_t>(N),
                              static_cast<std::int32_t>(chunk.size()), pick({1, 3, 128})},
                pick({1, 5, 32}));
    std::vector<std::vector<std::int64_t>> rows;
    for (std::size_t t = 0; t < tokens; ++t)
      rows.emplace_back(topk.begin() + static_cast<std::ptrdiff_t>(t * stride),
                        topk.begin() + static_cast<std::ptrdiff_t>((t + 1) * stride));
    const auto expected =
        reference::combined_indices(chunk, gathered, rows, ratio, top_k, window, M, N);
    for (std::size_t t = 0; t < tokens; ++t) {
      ASSERT_EQ(counts[t], static_cast<std::int32_t>(expected[t].size()));
      const auto row = indices.begin() + static_cast<std::ptrdiff_t>(t * width);
      const Ints used(row, row + counts[t]);
      ASSERT_EQ(wide(used), expected[t]) << "token " << t;
      // What lies past the length is the caller's.
      ASSERT_TRUE(std::all_of(row + counts[t], row + static_cast<std::ptrdiff_t>(width),
                              [](std::int32_t v) { return v == kPoison; }));
      // Never a row that was not gathered.
      for (const std::int64_t v : expected[t]) ASSERT_GE(v, 0);
    }
  }
}

TEST_F(HostKernels, BodiesFaultWhereTheDeviceWouldCorruptMemory) {
  const auto kind_of = [](const auto& work) -> std::string {
    try {
      work();
      return "";
    } catch (const KernelFault& fault) {
      EXPECT_NE(std::string(fault.location.file_name()).find("kernels/jit/bodies/"),
                std::string::npos);
      return fault.kind;
    }
  };
  const std::vector<Request> requests = {{4, 9}, {4, 9}, {4, 9}};
  const Ints starts = locs(requests), seq = lens(requests), gather = {9, 9, 9}, topk(12 * 4, 0);
  Ints small(2), indices(12 * 132), counts(12);
  const auto compute = [&](const Ints& from) {
    run_on_host(testing::compute_key(4),
                ComputePrefillLaunch{out(small), in(from), in(seq), 3, 0, 128});
  };
  EXPECT_EQ(kind_of([&] { compute(starts); }), "out_of_bounds");  // three results, room for two
  EXPECT_EQ(kind_of([&] { compute({0, 4}); }), "out_of_bounds");  // locations of one request
  const auto combine = [&](std::int32_t M) {
    run_on_host(testing::combine_key(4, 4, 4, "TTTT"),
                CombineLaunch{out(indices), out(counts), in(topk), in(starts), in(seq), in(gather),
                              132, 4, M, 0, 3, 2});
  };
  EXPECT_EQ(kind_of([&] { combine(1000); }), "");
  EXPECT_EQ(kind_of([&] { combine(1 << 30); }), "overflow");  // third request's first row: 2 * 2^30
}

TEST_F(HostKernels, AlignmentThatThePointerLacksIsAFault) {
  const std::vector<Request> chunk = {{2, 9}, {2, 9}, {2, 9}, {2, 9}, {2, 9}};
  const Ints starts = locs(chunk), seq = lens(chunk);
  Ints ks(10), ke(10), owners(10);
  try {
    run_on_host(testing::chunk_key("any", "any", 4, "T"),
                BuildChunkLaunch{out(ks), out(ke), out(owners), in(starts), in(seq, 2), 0, 10, 5});
    ADD_FAILURE() << "no fault";
  } catch (const KernelFault& fault) {
    EXPECT_EQ(fault.kind, "misaligned");
  }
  EXPECT_THROW(run_on_host(testing::combine_key(4, 8, 8, "TTTT"), ComputePrefillLaunch{}),
               std::runtime_error);
}

}  // namespace
}  // namespace warmgate::jit
