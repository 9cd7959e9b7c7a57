// Compressors: state rows, and entries from stored state rows.
#include "kernels/cpu/compressor.h"

#include <cstring>

#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/paged.h"
#include "kernels/numerics/rope_tables.h"
#include "kernels/reference/compressor.h"
#include "kernels/reference/number.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

void states(Random& random, Table& table) {
  for (const ref::CompressorShape shape : {ref::CompressorShape{4, 512}, {4, 128}, {128, 512}}) {
    const std::int64_t columns = shape.columns(), width = 2 * columns;
    const std::int64_t length = 20;
    const std::int64_t first = random.integer(0, 500);
    Cache cache = Cache::state(random, {first + length}, shape.ratio == 4 ? 4 : 8, width);
    const auto kv_score = random.fp32(length * width);
    const auto ape = random.fp32(shape.ratio * columns);
    std::vector<std::int64_t> positions, slots;
    for (std::int64_t p = first; p < first + length; ++p) {
      positions.push_back(p);
      slots.push_back(p % 7 == 6 ? -1 : cache.slot(0, p));
    }
    const std::vector<std::uint8_t> before = cache.memory();
    device()->save_partial_states({length, columns, shape.ratio, kv_score.data(), ape.data(),
                                   slots.data(), positions.data(), cache.op()});
    const ref::Matrix in = rows_fp32(kv_score, width), offsets = rows_fp32(ape, columns);
    std::int64_t differ = 0;
    for (std::int64_t t = 0; t < length; ++t) {
      if (slots[static_cast<std::size_t>(t)] < 0) continue;
      const ref::Vector want = ref::state_row(shape, in.row(t), offsets, first + t);
      const ref::Vector got = ref::state_row_at(cache.pages(), cache.table(0), width, first + t);
      // One fp32 addition: exact after rounding the exact sum.
      for (std::size_t i = 0; i < want.size(); ++i) differ += got[i] == ref::fp32(want[i]) ? 0 : 1;
    }
    table.exact("compressor state rows",
                "ratio " + std::to_string(shape.ratio) + ", D " + std::to_string(shape.dim) +
                    ", positions not from 0",
                differ, cache.disturbed(before, slots));
  }
}

struct EntryCase {
  ref::CompressorShape shape;
  cpu::EntryFormat format;
  const char* name;
  double size = 1;
};

// Entries of two requests; only rows that an entry pools are in the cache, all others are poison.
void entries(Random& random, Table& table, const EntryCase& c) {
  const std::int64_t ratio = c.shape.ratio, width = 2 * c.shape.columns();
  const std::int64_t overlap = c.shape.overlap() ? 1 : 0;
  const std::vector<std::int64_t> lengths{ratio * 5 + 2, ratio * 2};
  Cache state = Cache::state(random, lengths, ratio == 4 ? 4 : 8, width);
  std::vector<std::int64_t> kept;
  for (const std::int64_t l : lengths) kept.push_back(l / ratio + 1);
  const bool indexer = c.format != cpu::EntryFormat::kDsMla;
  const bool fp4 = c.format == cpu::EntryFormat::kIndexerMxfp4;
  Cache cache =
      indexer ? Cache::indexer(random, kept, fp4) : Cache::ds_mla(random, kept, 256 / ratio);
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    for (std::int64_t p = 0; p < lengths[r]; ++p) {
      auto row = random.fp32(width, c.size);
      // Scores of any spread, so that the softmax is neither flat nor one row.
      for (std::size_t i = row.size() / 2; i < row.size(); ++i)
        row[i] *= static_cast<float>(2 / c.size);
      state.put_state(static_cast<std::int64_t>(r), p, row);
    }
  }
  // The first request's early rows are given up once its first entries exist: start at entry 2.
  const std::int64_t start = 2 * ratio + 1;
  state.free_before(0, start - (overlap + 1) * ratio, -1);
  state.poison_null_page(0xFF);
  std::vector<std::int64_t> positions, slots;
  std::vector<std::int32_t> requests;
  for (std::int32_t r = 0; r < 2; ++r) {
    for (std::int64_t p = r == 0 ? start : 0; p < lengths[static_cast<std::size_t>(r)]; ++p) {
      positions.push_back(p);
      requests.push_back(r);
      slots.push_back(ref::compressed_slot(cache.table(r), 256, ratio, p));
    }
  }
  const auto norm = random.bf16(c.shape.dim);
  const ref::Rope rope = ref::rope_of_layer(ratio, ref::WindowRope::yarn);
  const auto rows = rope_table(rope, lengths[0]);
  const std::vector<std::uint8_t> before = cache.memory();
  device()->compress_window({static_cast<std::int64_t>(positions.size()), ratio, overlap,
                             c.shape.dim, state.op(), state.op_table(), requests.data(),
                             positions.data(), norm.data(), rows.data(), slots.data(), c.format,
                             cache.op(), 1e-6F});

  double worst = 0;
  std::int64_t count = 0;
  for (std::size_t t = 0; t < positions.size(); ++t) {
    if (!ref::ends_entry(ratio, positions[t])) continue;
    const std::int64_t entry = positions[t] / ratio;
    std::vector<std::optional<ref::Vector>> pooled;
    for (const std::int64_t p : ref::pooled_positions(c.shape, entry)) {
      pooled.push_back(p < 0 ? std::nullopt
                             : std::optional(ref::state_row_at(
                                   state.pages(), state.table(requests[t]), width, p)));
    }
    const ref::Vector exact =
        ref::compressed_entry(c.shape, pooled, from_bf16(norm), 1e-6, rope, entry);
    const ref::Place at = ref::place(cache.table(requests[t]), cache.page_rows(), entry);
    const ref::Bytes page = cache.pages().page(at.block);
    ref::Vector got, want;
    if (!indexer) {
      const auto stored = ref::ds_mla_row(page, cache.page_rows(), at.row);
      got = ref::decode_ds_mla(stored);
      want = ref::expected_ds_mla(exact, stored);
    } else if (fp4) {
      const auto stored = ref::indexer_row_fp4(page, 64, at.row);
      got = ref::decode_indexer_fp4(stored);
      want = ref::expected_indexer_fp4(exact, stored);
    } else {
      const auto stored = ref::indexer_row(page, 64, at.row);
      got = ref::decode_indexer(stored);
      want = ref::expected_indexer(exact, stored);
    }
    worst = std::max(worst, ref::row_error(got, want));
    ++count;
  }
  table.error("compressed entry as stored",
              std::string(c.name) + ", " + std::to_string(count) + " entries, early rows freed",
              worst, cache.disturbed(before, slots), kStoredLimit);
}

void attention_entries(Random& random, Table& table) {
  entries(random, table, {{4, 512}, cpu::EntryFormat::kDsMla, "ratio 4, overlap"});
  entries(random, table, {{128, 512}, cpu::EntryFormat::kDsMla, "ratio 128"});
  // So small that eps decides in the norm.
  entries(random, table, {{4, 512}, cpu::EntryFormat::kDsMla, "ratio 4, size 1e-3", 1e-3});
}

void indexer_entries(Random& random, Table& table) {
  entries(random, table, {{4, 128}, cpu::EntryFormat::kIndexerFp8, "indexer, fp8"});
  entries(random, table, {{4, 128}, cpu::EntryFormat::kIndexerMxfp4, "indexer, MXFP4"});
}

}  // namespace

std::vector<Case> compressor_cases() {
  return {{"compressor_state_rows", states},
          {"compressed_entries", attention_entries},
          {"indexer_entries", indexer_entries}};
}

}  // namespace warmgate::numerics
