// Sparse decode: replays over input sets that together exceed the L2.
#include <memory>
#include <random>

#include "ci/bench/gpu/bench.h"
#include "kernels/cuda/attention/sparse_decode.h"
#include "kernels/cuda/attention/sparse_decode_paths.h"

namespace warmgate::bench {
namespace {

using kernels::cpu::SparseDecode;
using kernels::cuda::DecodeSplit;

constexpr std::int64_t kRows = 64, kPageBytes = 37440;
constexpr std::int64_t kSlots = std::int64_t{1} << 19;  // 306 MB of pages

struct Shape {
  const char* name;
  std::int64_t heads, tokens, sharing, width, extra_width;  // `sharing`: tokens of one draft block
  double reference_us, must_us, aim_us;
};

// Pages all sets share; every set names its own random rows.
struct Cache {
  explicit Cache(std::uint64_t seed) : memory(kSlots / kRows * kPageBytes) {
    memory.fill_e4m3(seed);
    // Scale bytes 2^-7..2^0, rope values of ordinary size.
    std::vector<std::uint8_t> page(kPageBytes);
    kernels::cuda::check(
        cudaMemcpy(page.data(), memory.as<void>(), page.size(), cudaMemcpyDeviceToHost), "copy");
    std::mt19937_64 random(seed);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t i = 0; i < 64; ++i) {
        page[r * 576 + 449 + 2 * i] = static_cast<std::uint8_t>(0x3E | (random() & 0x81));
      }
      for (std::int64_t b = 0; b < 8; ++b)
        page[kRows * 576 + r * 8 + b] = static_cast<std::uint8_t>(120 + random() % 8);
    }
    for (std::int64_t at = 0; at < kSlots / kRows; ++at) {
      kernels::cuda::check(cudaMemcpyAsync(memory.as<std::uint8_t>() + at * kPageBytes, page.data(),
                                           page.size(), cudaMemcpyHostToDevice),
                           "copy");
    }
  }
  kernels::cpu::Pages pages() const { return {memory.as<std::uint8_t>(), kPageBytes, kRows}; }
  Memory memory;
};

// What differs between sets.
struct Set {
  Set(const Shape& s, std::uint64_t seed)
      : q(s.tokens * s.heads * 1024),
        out(s.tokens * s.heads * 1024),
        indices(4 * s.tokens * s.width),
        extra(4 * std::max<std::int64_t>(1, s.tokens * s.extra_width)),
        lens(4 * s.tokens),
        extra_lens(4 * s.tokens),
        sink(4 * s.heads) {
    q.fill_bf16(seed);
    std::mt19937_64 random(seed);
    fill(s.tokens, s.sharing, s.width, true, random, indices, lens);
    if (s.extra_width > 0) fill(s.tokens, 1, s.extra_width, false, random, extra, extra_lens);
    const std::vector<float> sinks(s.heads, 0.5F);
    sink.copy_from(sinks.data(), sinks.size() * 4);
  }
  // A window is consecutive rows of two or three pages, extra rows lie anywhere.
  static void fill(std::int64_t tokens, std::int64_t sharing, std::int64_t width, bool window,
                   std::mt19937_64& random, Memory& indices, Memory& lens) {
    std::vector<std::int32_t> slots(tokens * width);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::int32_t slot = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        if (t % sharing != 0) {
          slots[t * width + i] = slots[(t - 1) * width + i];
          continue;
        }
        const bool jump = !window || i == 0 || (slot + 1) % kRows == 0;
        slot = jump ? static_cast<std::int32_t>(random() % kSlots) : slot + 1;
        if (window && i > 0 && jump) slot = static_cast<std::int32_t>(slot / kRows * kRows);
        slots[t * width + i] = slot;
      }
    }
    indices.copy_from(slots.data(), slots.size() * 4);
    const std::vector<std::int32_t> all(tokens, static_cast<std::int32_t>(width));
    lens.copy_from(all.data(), all.size() * 4);
  }
  Memory q, out, indices, extra, lens, extra_lens, sink;
};

// cluster 0: as run() decides.
void measure(Bench& bench, const Cache& cache, const Shape& s, const DecodeSplit& split) {
  const double keys = static_cast<double>(s.tokens * (s.width + s.extra_width));
  const double bytes = keys * 584 + 2048.0 * static_cast<double>(s.tokens * s.heads);
  const int count = static_cast<int>(std::min(16.0, std::max(4.0, 240e6 / bytes)));
  std::vector<std::unique_ptr<Set>> sets;
  for (int i = 0; i < count; ++i) sets.push_back(std::make_unique<Set>(s, 1000 + i));
  const auto call = [&](int i) {
    const Set& set = *sets[i];
    SparseDecode p;
    p.tokens = s.tokens, p.heads = s.heads, p.width = s.width, p.extra_width = s.extra_width;
    p.q = set.q.as<std::uint16_t>(), p.out = set.out.as<std::uint16_t>();
    p.window = cache.pages(), p.indices = set.indices.as<std::int32_t>();
    p.lens = set.lens.as<std::int32_t>(), p.sink = set.sink.as<float>();
    if (s.extra_width > 0) {
      p.extra = cache.pages(), p.extra_indices = set.extra.as<std::int32_t>();
      p.extra_lens = set.extra_lens.as<std::int32_t>();
    }
    if (split.cluster == 0) return kernels::cuda::run(p, bench.launch());
    kernels::cuda::run_hopper_decode(p, bench.launch(), split);
  };
  Result r;
  r.name = std::string("decode ") + s.name;
  if (split.cluster > 0) {
    r.name += ", " + std::to_string(split.groups * split.cluster) + " splits";
    if (split.groups > 1) r.name += " in " + std::to_string(split.groups) + " groups";
  }
  r.time = bench.time(count, call);
  r.bytes = bytes;
  r.flops = 2.0 * keys * static_cast<double>(s.heads) * 1024;
  if (split.cluster == 0) {
    r.reference_us = s.reference_us, r.must_us = s.must_us, r.aim_us = s.aim_us;
    if (s.reference_us > 0) r.peer = "FlashMLA 9241ae3, published";
  }
  bench.add(r);
}

constexpr Shape kShapes[] = {
    {"h64 b1 s1 128+512", 64, 1, 1, 128, 512, 12.4, 25, 12},
    {"h64 b64 s1 128+512", 64, 64, 1, 128, 512, 43.6, 87, 43.6},
    {"h64 b128 s1 128+512", 64, 128, 1, 128, 512, 45.2, 90, 45},
    {"h64 b128 s1 128", 64, 128, 1, 128, 0, 14.9, 30, 15},
    {"h64 b64 s8 128+512", 64, 512, 8, 128, 512, 166, 330, 166},
    {"h128 b128 s1 128+512", 128, 128, 1, 128, 512, 64.7, 130, 64.7},
    {"h128 b128 s1 128+1024", 128, 128, 1, 128, 1024, 103, 206, 103},
    {"h64 b1 s1 128+8192", 64, 1, 1, 128, 8192, 0, 0, 0},
};

void all(Bench& bench) {
  const Cache cache(7);
  for (const Shape& s : kShapes) measure(bench, cache, s, {0, 1});
}

// Each number of splits: what decode_split() is fitted to.
void by_splits(Bench& bench) {
  if (bench.launch().arch != 90) return;
  const Cache cache(7);
  for (const int i : {0, 1, 2, 3}) {
    for (const int splits : {1, 2, 3, 4, 5, 8, 10, 16}) {
      if (splits <= kernels::cuda::kAlwaysInCluster || kernels::cuda::places_large_clusters())
        measure(bench, cache, kShapes[i], {splits, 1});
    }
    if (i == 0) measure(bench, cache, kShapes[i], {5, 2});
  }
}

}  // namespace

std::vector<Case> decode_cases() { return {{"decode", all}, {"splits of decode", by_splits}}; }

}  // namespace warmgate::bench
