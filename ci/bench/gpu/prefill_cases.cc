// Sparse prefill attention: random lists over a workspace of rows, as the indexer makes them.
#include <fmt/format.h>

#include <memory>
#include <random>

#include "ci/bench/gpu/bench.h"
#include "kernels/cuda/attention/prefill_kernels.h"

namespace warmgate::bench {
namespace {

using kernels::cpu::SparsePrefill;
using Run = void (*)(const SparsePrefill&, const kernels::cuda::Launch&);

struct Shape {
  int heads, tokens, topk, rows;
  double reference_us, must_us, aim_us;
};

// Queries, lists and output of one call. Two sets are far larger than the L2.
struct Set {
  Set(const Shape& s, std::uint64_t seed)
      : q(std::size_t{1024} * s.tokens * s.heads),
        kv(std::size_t{1024} * s.rows),
        out(std::size_t{1024} * s.tokens * s.heads),
        indices(std::size_t{4} * s.tokens * s.topk),
        lens(std::size_t{4} * s.tokens),
        sink(std::size_t{4} * s.heads) {
    q.fill_bf16(seed);
    kv.fill_bf16(seed + 1);
    std::mt19937_64 rng(seed);
    std::vector<std::int32_t> list(static_cast<std::size_t>(s.tokens) * s.topk);
    for (auto& entry : list)
      entry = static_cast<std::int32_t>((rng() >> 32) * static_cast<std::uint64_t>(s.rows) >> 32);
    indices.copy_from(list.data(), indices.bytes());
    const std::vector<std::int32_t> full(static_cast<std::size_t>(s.tokens), s.topk);
    lens.copy_from(full.data(), lens.bytes());
    const std::vector<float> ordinary(static_cast<std::size_t>(s.heads), 0.5F);
    sink.copy_from(ordinary.data(), sink.bytes());
    p.tokens = s.tokens, p.heads = s.heads, p.width = s.topk, p.keys = s.rows;
    p.q = q.as<kernels::cpu::Bf16>(), p.kv = kv.as<kernels::cpu::Bf16>();
    p.indices = indices.as<std::int32_t>(), p.lens = lens.as<std::int32_t>();
    p.sink = sink.as<float>(), p.out = out.as<kernels::cpu::Bf16>();
  }
  Memory q, kv, out, indices, lens, sink;
  SparsePrefill p;
};

void measure(Bench& bench, const Shape& s, Run run, const std::string& note) {
  constexpr int kSets = 2;
  std::vector<std::unique_ptr<Set>> sets;
  for (int i = 0; i < kSets; ++i) sets.push_back(std::make_unique<Set>(s, 100 + 10 * i));
  Result r;
  r.name = fmt::format("prefill h{} sq{} topk{} skv{}", s.heads, s.tokens, s.topk, s.rows);
  r.time = bench.time(kSets, [&](int set) { run(sets[set]->p, bench.launch()); });
  const double queries = double(s.tokens) * s.heads;
  // Each input once: rows of the workspace are read again and again, mostly from the L2.
  r.bytes = 2 * 1024 * queries + 1024.0 * s.rows + 4.0 * s.tokens * (s.topk + 1);
  r.flops = 2 * queries * s.topk * (512 + 512);
  r.reference_us = s.reference_us, r.must_us = s.must_us, r.aim_us = s.aim_us;
  r.peer = "FlashMLA 9241ae3, published";
  r.note = note;
  bench.add(std::move(r));
}

template <int kCase>
void fast(Bench& bench) {
  constexpr Shape kShapes[] = {{64, 4096, 640, 65536, 702, 1750, 700},
                               {128, 4096, 640, 65536, 1411, 3500, 1400},
                               {64, 4096, 128, 8192, 255, 0, 0},
                               {128, 4096, 2048, 65536, 4097, 0, 0},
                               {64, 4096, 640, 8192, 0, 0, 0}};  // a workspace that the L2 holds
  measure(bench, kShapes[kCase], kernels::cuda::run, "");
}
void general(Bench& bench) {
  measure(bench, {64, 512, 640, 65536, 0, 0, 0}, kernels::cuda::run_prefill_general, "general");
}

}  // namespace

std::vector<Case> prefill_cases() {
  return {{"prefill h64 topk640", fast<0>},         {"prefill h128 topk640", fast<1>},
          {"prefill h64 window", fast<2>},          {"prefill h128 topk2048", fast<3>},
          {"prefill h64 small workspace", fast<4>}, {"prefill general", general}};
}

}  // namespace warmgate::bench
