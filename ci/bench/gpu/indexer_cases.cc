// The indexer: scores of many queries over gathered keys and of few over pages, top-k of both, and
// what feeds them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "ci/bench/gpu/bench.h"
#include "kernels/cuda/indexer/logits.h"
#include "kernels/cuda/indexer/quant.h"
#include "kernels/cuda/indexer/topk.h"

namespace warmgate::bench {
namespace {

namespace cpu = kernels::cpu;
constexpr std::int64_t kHeads = 64, kDim = 128, kRows = 64, kPageStride = 8640;

template <class T>
void write(Memory& memory, const std::vector<T>& values) {
  memory.copy_from(values.data(), values.size() * sizeof(T));
}

std::vector<float> normals(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& v : out) v = distribution(rng);
  return out;
}

// Half of what a copy reaches must be reached, eight tenths are the aim; and of products as many a
// second as of many queries.
void set_targets(const Bench& bench, Result& r) {
  if (bench.ceilings.copy_gb_s <= 0) return;
  const double copy_us = r.bytes / bench.ceilings.copy_gb_s * 1e-3;
  r.must_us = std::max(copy_us / 0.5, r.flops / 250e6);
  r.aim_us = std::max(copy_us / 0.8, r.flops / 900e6);
}
// Calls in a graph where one alone passes the L2, so that the graph's own start does not count.
constexpr int kCalls = 4;

void logits_prefill(Bench& bench) {
  const std::int64_t tokens = 4096, keys = 16384;
  Memory q(tokens * kHeads * kDim), w(tokens * kHeads * 4), values(keys * kDim), scales(keys * 4);
  Memory start(tokens * 4), end(tokens * 4), out(tokens * keys * 4);  // out alone passes the L2
  q.fill_e4m3(1);
  values.fill_e4m3(2);
  write(w, normals(tokens * kHeads, 3));
  write(scales, std::vector<float>(keys, 0.0078125F));
  write(start, std::vector<std::int32_t>(tokens, 0));
  write(end, std::vector<std::int32_t>(tokens, keys));
  const cpu::MqaLogitsPrefill p{tokens,
                                kHeads,
                                cpu::IndexFormat::kFp8,
                                q.as<std::uint8_t>(),
                                nullptr,
                                w.as<float>(),
                                values.as<std::uint8_t>(),
                                scales.as<std::uint8_t>(),
                                start.as<std::int32_t>(),
                                end.as<std::int32_t>(),
                                out.as<float>(),
                                keys};
  Result r;
  r.name = "indexer logits q4096 k16384";
  r.flops = 2.0 * tokens * keys * kHeads * kDim;
  r.bytes = double(q.bytes() + w.bytes() + values.bytes() + scales.bytes() + out.bytes());
  r.must_us = 4400, r.aim_us = 1222, r.reference_us = 1047;
  r.peer = "DeepGEMM, published 960-1145 TFLOP/s";
  r.time = bench.time(1, [&](int) { run(p, bench.launch()); });
  bench.add(r);
}

void paged(Bench& bench, std::int64_t requests, std::int64_t next_n, std::int64_t context) {
  const std::int64_t tokens = requests * next_n, blocks = context / kRows;
  const std::int64_t pool = requests * blocks;
  Memory q(tokens * kHeads * kDim), w(tokens * kHeads * 4), pages(pool * kPageStride);
  Memory table(pool * 4), lens(tokens * 4), out(tokens * context * 4);
  q.fill_e4m3(1);
  pages.fill_e4m3(2);  // scales too: any finite number
  write(w, normals(tokens * kHeads, 3));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(pool));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(4));
  write(table, ids);
  write(lens, std::vector<std::int32_t>(static_cast<std::size_t>(tokens),
                                        static_cast<std::int32_t>(context)));
  const cpu::MqaLogitsPaged p{tokens,
                              kHeads,
                              next_n,
                              cpu::IndexFormat::kFp8,
                              q.as<std::uint8_t>(),
                              nullptr,
                              w.as<float>(),
                              {pages.as<std::uint8_t>(), kPageStride, kRows},
                              {table.as<std::int32_t>(), blocks, kRows},
                              lens.as<std::int32_t>(),
                              out.as<float>(),
                              context};
  Result r;
  r.name = fmt::format("indexer logits paged b{} s{} k{}", requests, next_n, context);
  r.flops = 2.0 * tokens * context * kHeads * kDim;
  r.bytes = 132.0 * requests * context + double(q.bytes() + w.bytes() + out.bytes());
  set_targets(bench, r);
  r.time = bench.time(kCalls, [&](int) { run(p, bench.launch()); });
  bench.add(r);
}
void logits_paged(Bench& bench) {
  paged(bench, 64, 1, 16384);
  paged(bench, 64, 2, 16384);
  paged(bench, 32, 8, 16384);
  paged(bench, 4, 1, 262144);
}

void top(Bench& bench, std::int64_t rows, std::int64_t columns, std::int64_t topk, int sets) {
  std::vector<std::unique_ptr<Memory>> scores, outs;
  for (int set = 0; set < sets; ++set) {
    scores.push_back(std::make_unique<Memory>(rows * columns * 4));
    outs.push_back(std::make_unique<Memory>(rows * topk * 4));
    auto values = normals(std::min<std::int64_t>(rows, 16) * columns, 7 + set);
    for (std::int64_t r = 0; r < rows; r += 16) {
      kernels::cuda::check(
          cudaMemcpy(scores.back()->as<float>() + r * columns, values.data(),
                     static_cast<std::size_t>(std::min<std::int64_t>(rows - r, 16) * columns) * 4,
                     cudaMemcpyHostToDevice),
          "cudaMemcpy");
    }
  }
  Memory end(rows * 4);
  write(end, std::vector<std::int32_t>(static_cast<std::size_t>(rows),
                                       static_cast<std::int32_t>(columns)));
  Result r;
  r.name = fmt::format("top-k {} of {}, {} rows", topk, columns, rows);
  r.bytes = 4.0 * rows * columns;
  set_targets(bench, r);
  r.time = bench.time(sets, [&](int set) {
    run(cpu::TopkPerRow{rows, topk, scores[set]->as<float>(), columns, nullptr,
                        end.as<std::int32_t>(), outs[set]->as<std::int32_t>(), topk},
        bench.launch());
  });
  bench.add(r);
}
void top_k(Bench& bench) {
  top(bench, 4096, 16384, 512, 2);
  top(bench, 8, 262144, 512, 12);
  top(bench, 64, 16384, 512, 24);
}

void quantise(Bench& bench) {
  const std::int64_t tokens = 16384;
  Memory iq(tokens * kHeads * kDim * 2), weights(tokens * kHeads * 2), angles(tokens * 64 * 4);
  Memory positions(tokens * 8), q(tokens * kHeads * kDim), w(tokens * kHeads * 4);
  iq.fill_bf16(1);
  weights.fill_bf16(2);
  write(angles, normals(tokens * 64, 3));
  std::vector<std::int64_t> order(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  write(positions, order);
  Result r;
  r.name = "indexer query quantisation, 16384 tokens";
  r.bytes = double(iq.bytes() + weights.bytes() + angles.bytes() + positions.bytes() + q.bytes() +
                   w.bytes());
  set_targets(bench, r);
  r.time = bench.time(kCalls, [&](int) {
    run(cpu::IndexerQuant{tokens, kHeads, cpu::IndexFormat::kFp8, iq.as<cpu::Bf16>(),
                          weights.as<cpu::Bf16>(), angles.as<float>(), positions.as<std::int64_t>(),
                          q.as<std::uint8_t>(), nullptr, w.as<float>()},
        bench.launch());
  });
  bench.add(r);
}

void gather(Bench& bench) {
  const std::int64_t requests = 16, entries = 65536, blocks = entries / kRows;
  Memory pages(requests * blocks * kPageStride), table(requests * blocks * 4), lens(requests * 4);
  Memory values(requests * entries * kDim), scales(requests * entries * 4);
  pages.fill_e4m3(1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(requests * blocks));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(4));
  write(table, ids);
  write(lens, std::vector<std::int32_t>(requests, entries * 4));
  Result r;
  r.name = "indexer key gather, 1048576 rows";
  r.bytes = 2.0 * 132 * requests * entries;
  // Scattered rows: eight tenths of what rows of 576 bytes reach, and as much.
  if (bench.ceilings.row_gather_gb_s > 0) {
    r.aim_us = r.bytes / bench.ceilings.row_gather_gb_s * 1e-3;
    r.must_us = r.aim_us / 0.8;
  }
  r.time = bench.time(kCalls, [&](int) {
    run(cpu::GatherIndexerKeys{requests,
                               4,
                               cpu::IndexFormat::kFp8,
                               lens.as<std::int32_t>(),
                               {pages.as<std::uint8_t>(), kPageStride, kRows},
                               {table.as<std::int32_t>(), blocks, kRows},
                               values.as<std::uint8_t>(),
                               scales.as<std::uint8_t>()},
        bench.launch());
  });
  bench.add(r);
}

}  // namespace

std::vector<Case> indexer_cases() {
  return {{"indexer logits", logits_prefill},
          {"indexer logits paged", logits_paged},
          {"indexer top-k", top_k},
          {"indexer query quantisation", quantise},
          {"indexer key gather", gather}};
}

}  // namespace warmgate::bench
