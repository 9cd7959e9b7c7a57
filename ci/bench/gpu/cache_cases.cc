// Kernels around the caches. All are bound by memory: each input and output moved once, against the
// copy of the same run, or against moving rows by index where rows lie scattered.
#include <fmt/format.h>

#include "ci/bench/gpu/bench.h"
#include "ci/bench/gpu/gather_ceiling.h"
#include "kernels/cuda/basic/compressor.h"
#include "kernels/cuda/basic/output.h"
#include "kernels/cuda/basic/pages.h"
#include "kernels/cuda/basic/query_key.h"
#include "kernels/cuda/basic/rope.h"

namespace warmgate::bench {
namespace {

namespace cpu = kernels::cpu;
using Bf16 = cpu::Bf16;

template <class Params>
void add(Bench& bench, const std::string& name, double bytes, int sets, double ceiling_gb_s,
         double must, double aim, const std::vector<Params>& params) {
  for (const Params& p : params) {
    if (const auto reason = kernels::cuda::can_run(p, bench.launch()))
      throw std::runtime_error(*reason);
  }
  Result r;
  r.name = name;
  r.bytes = bytes;
  r.time = bench.time(sets, [&](int set) {
    kernels::cuda::run(params[static_cast<std::size_t>(set)], bench.launch());
  });
  const double floor_us = bytes / ceiling_gb_s * 1e-3;
  r.must_us = floor_us / must;
  r.aim_us = floor_us / aim;
  r.note = fmt::format("{:.0f}% of {:.0f} GB/s", 100 * floor_us / r.time.median_us, ceiling_gb_s);
  bench.add(r);
}

template <class T>
void upload(Memory& to, const std::vector<T>& values) {
  to.copy_from(values.data(), values.size() * sizeof(T));
}

/// first, first+1, … on the device.
Memory& counting(Memory& m, std::int64_t count, std::int64_t first = 0) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<std::int64_t>(i);
  upload(m, values);
  return m;
}

constexpr std::int64_t kPageRows = 64, kPageBytes = 37440;

void insert(Bench& bench) {
  const std::int64_t tokens = 131072;
  Memory k(tokens * 1024), slots(tokens * 8), pages(tokens / kPageRows * kPageBytes);
  k.fill_bf16(11);
  counting(slots, tokens);
  cpu::InsertDsMla p;
  p.tokens = tokens;
  p.k = k.as<Bf16>();
  p.slots = slots.as<std::int64_t>();
  p.pages = {pages.as<std::uint8_t>(), kPageBytes, kPageRows};
  add(bench, "insert into pages, T 131072", tokens * (1024.0 + 584 + 8), 1,
      bench.ceilings.copy_gb_s, 0.5, 0.8, std::vector{p});
}

void query_and_key(Bench& bench) {
  const std::int64_t tokens = 4096, heads = 64, positions = 65536;
  Memory q(tokens * heads * 1024), kv(tokens * 1024), out(tokens * heads * 1024), slots(tokens * 8),
      at(tokens * 8), table(positions * 256), pages(tokens / kPageRows * kPageBytes);
  q.fill_bf16(21);
  kv.fill_bf16(22);
  counting(slots, tokens);
  counting(at, tokens, 1000);
  kernels::cuda::run(cpu::RopeTable{positions, 10000, true, 16, 32, 1, 65536, table.as<float>()},
                     bench.launch());
  cpu::QNormRopeInsert p;
  p.tokens = tokens;
  p.heads = p.padded_heads = heads;
  p.q = q.as<Bf16>();
  p.kv = kv.as<Bf16>();
  p.cos_sin = table.as<float>();
  p.positions = at.as<std::int64_t>();
  p.slots = slots.as<std::int64_t>();
  p.pages = {pages.as<std::uint8_t>(), kPageBytes, kPageRows};
  p.q_out = out.as<Bf16>();
  add(bench, "query norm, RoPE, insert, T 4096, 64 heads",
      tokens * (heads * 2048.0 + 1024 + 584 + 256 + 16), 1, bench.ceilings.copy_gb_s, 0.5, 0.8,
      std::vector{p});
}

void output(Bench& bench) {
  const std::int64_t tokens = 8192, heads = 64, positions = 65536;
  Memory o(tokens * heads * 1024), q(tokens * heads * 512), scales(tokens * heads * 16),
      at(tokens * 8), table(positions * 256);
  o.fill_bf16(31);
  counting(at, tokens, 1000);
  kernels::cuda::run(cpu::RopeTable{positions, 10000, true, 16, 32, 1, 65536, table.as<float>()},
                     bench.launch());
  cpu::InverseRopeQuant p;
  p.tokens = tokens;
  p.padded_heads = heads;
  p.groups = 8;
  p.inputs = heads / 8 * 512;
  p.o = o.as<Bf16>();
  p.cos_sin = table.as<float>();
  p.positions = at.as<std::int64_t>();
  p.q = q.as<std::uint8_t>();
  p.scales = scales.as<float>();
  add(bench, "inverse RoPE, quantise, T 8192, 64 heads",
      tokens * (heads * (1024.0 + 512 + 16) + 256 + 8), 1, bench.ceilings.copy_gb_s, 0.5, 0.8,
      std::vector{p});
}

// State pages one behind the other, positions 0..tokens-1 of one request.
void compressor(Bench& bench, std::int64_t ratio) {
  const std::int64_t tokens = 65536, overlap = ratio == 4 ? 1 : 0;
  const std::int64_t width = (1 + overlap) * 512, page_rows = ratio == 4 ? 4 : 8;
  const std::int64_t page_bytes = 32832, pages = tokens / page_rows;
  const std::int64_t entries = tokens / ratio, entry_rows = 256 / ratio;
  const std::int64_t entry_bytes = ratio == 4 ? 37440 : 1728;
  Memory in(tokens * 2 * width * 4), ape(ratio * width * 4), state(pages * page_bytes),
      slots(tokens * 8), at(tokens * 8), table(pages * 4), request(tokens * 4), norm(1024),
      angles(tokens * 256), entry_slots(tokens * 8), cache(entries / entry_rows * entry_bytes);
  // bf16 pairs read as fp32 are ordinary numbers.
  in.fill_bf16(41);
  ape.fill_bf16(42);
  norm.fill_bf16(43);
  counting(slots, tokens);
  counting(at, tokens);
  std::vector<std::int32_t> pages_of(static_cast<std::size_t>(pages));
  for (std::size_t i = 0; i < pages_of.size(); ++i) pages_of[i] = static_cast<std::int32_t>(i);
  upload(table, pages_of);
  upload(request, std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 0));
  std::vector<std::int64_t> ends(static_cast<std::size_t>(tokens), -1);
  for (std::int64_t t = ratio - 1; t < tokens; t += ratio)
    ends[static_cast<std::size_t>(t)] = t / ratio;
  upload(entry_slots, ends);
  kernels::cuda::run(cpu::RopeTable{tokens, 160000, true, 16, 32, 1, 65536, angles.as<float>()},
                     bench.launch());
  cpu::SavePartialStates save;
  save.tokens = tokens;
  save.width = width;
  save.ratio = ratio;
  save.kv_score = in.as<float>();
  save.ape = ape.as<float>();
  save.slots = slots.as<std::int64_t>();
  save.positions = at.as<std::int64_t>();
  save.state = {state.as<std::uint8_t>(), page_bytes, page_rows};
  add(bench, fmt::format("compressor state rows, ratio {}, T 65536", ratio),
      tokens * (16.0 * width + 16), 1, bench.ceilings.copy_gb_s, 0.5, 0.8, std::vector{save});
  cpu::CompressWindow p;
  p.tokens = tokens;
  p.ratio = ratio;
  p.overlap = overlap;
  p.dim = 512;
  p.state = save.state;
  p.state_table = {table.as<std::int32_t>(), pages, page_rows};
  p.token_to_req = request.as<std::int32_t>();
  p.positions = at.as<std::int64_t>();
  p.norm = norm.as<Bf16>();
  p.cos_sin = angles.as<float>();
  p.slots = entry_slots.as<std::int64_t>();
  p.cache = {cache.as<std::uint8_t>(), entry_bytes, entry_rows};
  add(bench, fmt::format("compressor entries, ratio {}, T 65536", ratio),
      tokens * (8.0 * width + 16) + entries * (584.0 + 256 + 4), 1, bench.ceilings.copy_gb_s, 0.5,
      0.8, std::vector{p});
}

void compressors(Bench& bench) {
  compressor(bench, 4);
  compressor(bench, 128);
}

// Pages in random order: of 64 rows as the window and c4a have them, of 2 as c128a.
void gather(Bench& bench, std::int64_t page_rows, std::int64_t page_bytes, double ceiling,
            const char* name) {
  const std::int64_t rows = 262144, pages = rows / page_rows;
  Memory cache(pages * page_bytes), table(pages * 4), lens(4), kv(rows * 1024);
  cache.fill_e4m3(51);
  fill_permutation(table.as<std::int32_t>(), pages, 777, bench.launch().stream);
  upload(lens, std::vector<std::int32_t>{static_cast<std::int32_t>(rows)});
  cpu::DequantGather p;
  p.requests = 1;
  p.request_stride = rows * 512;
  p.seq_lens = lens.as<std::int32_t>();
  p.pages = {cache.as<std::uint8_t>(), page_bytes, page_rows};
  p.table = {table.as<std::int32_t>(), pages, page_rows};
  p.kv = kv.as<Bf16>();
  add(bench, name, rows * (584.0 + 1024) + pages * 4.0, 1, ceiling, 0.8, 1, std::vector{p});
}

void gathers(Bench& bench) {
  gather(bench, 64, kPageBytes, bench.ceilings.row_gather_gb_s,
         "gather 262144 rows, random pages of 64");
  gather(bench, 2, 1728, bench.ceilings.row_gather_gb_s, "gather 262144 rows, random pages of 2");
}

}  // namespace

std::vector<Case> cache_cases() {
  return {{"cache insert", insert},
          {"cache query and key", query_and_key},
          {"cache output", output},
          {"cache compressor", compressors},
          {"cache gather", gathers}};
}

}  // namespace warmgate::bench
