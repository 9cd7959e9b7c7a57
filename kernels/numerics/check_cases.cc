// Six checks that any reference for these layers should include, each under its own name.
#include <cmath>
#include <limits>

#include "kernels/cpu/compressor.h"
#include "kernels/cpu/metadata.h"
#include "kernels/cpu/query_key.h"
#include "kernels/cpu/sparse_attention.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/rope_tables.h"
#include "kernels/numerics/scene.h"
#include "kernels/reference/compressor.h"
#include "kernels/reference/visible.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

const char* kind(std::int64_t ratio) {
  return ratio == 1 ? "swaonly" : ratio == 4 ? "c4a" : "c128a";
}

double worst_head(const std::vector<Bf16>& out, const ref::Matrix& want) {
  const std::int64_t heads = want.rows * Scene::kHeads;
  return ref::worst_row({heads, 512, from_bf16(out)}, {heads, 512, want.values}).error;
}

// 1. An entry is there for position r-1 and r, not for r-2; ratio 4's first entry has four rows
// that weigh nothing.
void entry_visibility(Random& random, Table& table) {
  for (const std::int64_t ratio : {4, 128}) {
    const std::vector<std::int64_t> positions{ratio - 2, ratio - 1, ratio};
    const std::vector<std::int32_t> wanted{0, 1, 1};
    const std::vector<std::int32_t> requests(3, 0);
    const std::vector<std::uint8_t> valid(3, 1);
    Cache cache = Cache::ds_mla(random, {2}, 256 / ratio);
    Output<std::int32_t> seen(3), indices(3 * 64), lens(3);
    device()->visible_entries({3, ratio, positions.data(), seen.data()});
    device()->compressed_indices({3, ratio, 64, positions.data(), requests.data(), valid.data(),
                                  cache.op_table(), indices.data(), lens.data()});
    table.exact("check 1: lengths at p r-2, r-1, r", kind(ratio),
                differing(seen.copy(), wanted) + differing(lens.copy(), wanted));
    // And in what attention gives there.
    Scene scene(random, {ratio, 8, {2 * ratio + 2}, 1});
    const std::vector<Piece> pieces{{0, ratio - 2, 3}, {0, 2 * ratio - 2, 3}};
    table.error("check 1: attention around r, 2r", kind(ratio),
                worst_head(scene.decode(pieces, true), scene.oracle(pieces)));
  }
}

void first_entry(Random& random, Table& table) {
  // kv is 1 in the current columns and huge in all others; if any of the four missing rows (page 0,
  // poisoned with large values and with NaN) or a wrong column counted, the mean would not be 1.
  for (const int poison : {0x7E, 0xFF, 0x00}) {
    Cache state = Cache::state(random, {4}, 4, 2048);
    state.poison_null_page(static_cast<std::uint8_t>(poison));
    for (std::int64_t p = 0; p < 4; ++p) {
      std::vector<float> row(2048, 1e30F);
      for (std::size_t c = 512; c < 1024; ++c) row[c] = c % 2 == 0 ? 1.0F : -1.0F;
      for (std::size_t c = 1536; c < 2048; ++c) row[c] = static_cast<float>(random.normal());
      state.put_state(0, p, row);
    }
    Cache cache = Cache::ds_mla(random, {1}, 64);
    const std::vector<std::int64_t> positions{3}, slots{cache.slot(0, 0)};
    const std::vector<std::int32_t> requests{0};
    const std::vector<Bf16> norm(512, Bf16{0x3F80});
    const auto rope = rope_table(ref::rope_of_layer(4, ref::WindowRope::yarn), 8);
    device()->compress_window({1, 4, 1, 512, state.op(), state.op_table(), requests.data(),
                               positions.data(), norm.data(), rope.data(), slots.data(),
                               cpu::EntryFormat::kDsMla, cache.op(), 1e-6F});
    const ref::Vector got = ref::ds_mla_rows(cache.pages(), cache.table(0), 0, 1).values;
    std::int64_t differ = 0;
    for (std::size_t c = 0; c < 512; ++c) differ += got[c] == (c % 2 == 0 ? 1 : -1) ? 0 : 1;
    table.exact("check 1: first entry of ratio 4",
                "four rows weigh nothing, poison " + std::to_string(poison), differ);
  }
}

// 2. The same position, the same cache: the same bits, whichever form computes it.
void decode_equals_prefill(Random& random, Table& table) {
  for (const std::int64_t ratio : {1, 4, 128}) {
    const std::int64_t length = 262 + random.integer(0, 30);
    Scene scene(random, {ratio, 8, {length, 9}, 1});
    const std::vector<Piece> pieces{
        {0, 0, 6}, {0, 61, 5}, {0, 125, 6}, {0, 253, length - 253}, {1, 0, 9}};
    same_sums(table, "check 2: decode = prefill",
              std::string(kind(ratio)) + ", length " + std::to_string(length), scene.decode(pieces),
              scene.prefill(pieces), 512, scene.overrun);
  }
}

// 3. Sinks at their limits, and heads that are only there as padding.
void sink_limits(Random& random, Table& table) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Scene scene(random, {4, 8, {140}, 1});
  const std::vector<Piece> pieces{{0, 0, 2}, {0, 130, 4}};
  for (const auto& [sink, name] :
       {std::pair{-kInfinity, "-inf: plain softmax"}, std::pair{kInfinity, "+inf: zeros"},
        std::pair{1e4F, "1e4: vanishing"}, std::pair{-1e4F, "-1e4: no effect"}}) {
    scene.sinks.assign(4, sink);
    const ref::Matrix want = scene.oracle(pieces);
    const double error =
        std::max(worst_head(scene.decode(pieces), want), worst_head(scene.prefill(pieces), want));
    table.error("check 3: sink limits", name, error, scene.overrun);
  }
}

void padding_heads(Random& random, Table& table) {
  // 3 real heads in 64, as the decode kernel's width wants them.
  const std::int64_t tokens = 4, heads = 3, padded = 64, keys = 140;
  const auto q = random.bf16(tokens * heads * 512);
  Output<Bf16> wide(tokens * padded * 512);
  device()->pad_q({tokens, heads, padded, q.data(), wide.data()});
  Cache cache = Cache::ds_mla(random, {keys}, 64);
  cache.fill_ds_mla(random);
  std::vector<std::int32_t> indices, lens(4, 128);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < 128; ++i)
      indices.push_back(static_cast<std::int32_t>(cache.slot(0, t + i)));
  }
  std::vector<float> sink = random.fp32(heads);
  const std::vector<float> narrow_sink = sink;
  sink.resize(padded, -std::numeric_limits<float>::infinity());
  Output<Bf16> narrow_out(tokens * heads * 512), wide_out(tokens * padded * 512);
  cpu::SparseDecode d;
  d.tokens = tokens;
  d.heads = heads;
  d.width = 128;
  d.q = q.data();
  d.window = cache.op();
  d.indices = indices.data();
  d.lens = lens.data();
  d.sink = narrow_sink.data();
  d.out = narrow_out.data();
  device()->sparse_decode(d);
  d.heads = padded;
  d.q = wide.data();
  d.sink = sink.data();
  d.out = wide_out.data();
  device()->sparse_decode(d);
  std::vector<Bf16> real_heads;
  std::int64_t bad = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < padded * 512; ++i) {
      const Bf16 value = wide_out[t * padded * 512 + i];
      if (i < heads * 512) {
        real_heads.push_back(value);
      } else {
        bad += std::isfinite(from_bf16(std::span(&value, 1)).front()) ? 0 : 1;
      }
    }
  }
  same_sums(table, "check 3: padding heads do not matter", "3 of 64 heads", real_heads,
            narrow_out.copy(), 512, bad + wide_out.overrun());
}

// 4. A long request in pieces whose prefix is below, at and above the window: as in one piece.
void chunked_prefill(Random& random, Table& table) {
  for (const std::int64_t ratio : {1, 4, 128}) {
    Scene scene(random, {ratio, 8, {300}, 1});
    const std::vector<Bf16> whole = scene.prefill({{0, 0, 300}});
    // The far end of every piece against the oracle too: the offset algebra, not only its
    // consistency.
    const std::vector<Piece> ends{{0, 125, 5}, {0, 255, 3}, {0, 298, 2}};
    for (const std::int64_t prefix : {1, 5, 126, 127, 128, 130, 255, 257}) {
      std::vector<Bf16> pieces;
      const std::int64_t middle = prefix + (300 - prefix) / 2;
      for (const Piece& piece : {Piece{0, 0, prefix}, Piece{0, prefix, middle - prefix},
                                 Piece{0, middle, 300 - middle}}) {
        // Another request in the same chunk moves every offset.
        for (const Bf16 v : scene.prefill({piece})) pieces.push_back(v);
      }
      same_sums(table, "check 4: chunked = whole",
                std::string(kind(ratio)) + ", prefix " + std::to_string(prefix), pieces, whole, 512,
                scene.overrun);
    }
    table.error("check 4: chunks against the oracle", kind(ratio),
                worst_head(scene.prefill(ends), scene.oracle(ends)));
  }
}

// Several requests in one chunk, of different lengths: each result as alone.
void chunk_of_requests(Random& random, Table& table) {
  for (const std::int64_t ratio : {1, 4, 128}) {
    Scene scene(random, {ratio, 8, {300, 5, 131, 270}, 1});
    const std::vector<Piece> chunk{{0, 290, 10}, {1, 0, 5}, {2, 126, 5}, {3, 127, 4}};
    std::vector<Bf16> alone;
    for (const Piece& piece : chunk) {
      for (const Bf16 v : scene.prefill({piece})) alone.push_back(v);
    }
    const std::vector<Bf16> together = scene.prefill(chunk);
    same_sums(table, "check 4: requests sharing a chunk", kind(ratio), together, alone, 512,
              scene.overrun);
    table.error("check 4: requests sharing a chunk", kind(ratio),
                worst_head(together, scene.oracle(chunk)));
  }
}

// 5. What lies in unused workspace rows and behind the lists does not matter.
void poisoned_tails(Random& random, Table& table) {
  for (const std::int64_t ratio : {1, 4, 128}) {
    Scene scene(random, {ratio, 8, {200, 67}, 1});
    const std::vector<Piece> pieces{{0, 130, 70}, {1, 3, 64}};
    const std::vector<Bf16> zeros = scene.prefill(pieces, 0x00);
    table.exact("check 5: large values in unused rows", kind(ratio),
                differing(scene.prefill(pieces, 0x7E), zeros));
    table.exact("check 5: NaN in unused rows", kind(ratio),
                differing(scene.prefill(pieces, 0xFF), zeros));
  }
}

// 6. Blocks the window has left are given up: tables say 0 (or -1), the null page is poison, and
// nothing of it is referenced or changes a result.
void freed_blocks(Random& random, Table& table) {
  for (const std::int64_t ratio : {1, 4, 128}) {
    for (const std::int32_t entry : {0, -1}) {
      Scene scene(random, {ratio, 8, {391}, 1});
      const std::vector<Piece> pieces{{0, 319, 2}, {0, 383, 3}, {0, 390, 1}};
      const std::vector<Bf16> before = scene.decode(pieces, true);
      const ref::Matrix want = scene.oracle(pieces);
      scene.window.free_before(0, 319 - 127, entry);
      scene.window.poison_null_page(0xFF);
      const std::string inputs =
          std::string(kind(ratio)) + ", entries become " + std::to_string(entry);
      const std::vector<Bf16> after = scene.decode(pieces, true);
      table.exact("check 6: freed blocks, decode", inputs,
                  differing(after, before) + scene.null_page_uses);
      same_sums(table, "check 6: freed blocks, prefill", inputs, scene.prefill(pieces), before,
                512);
      table.error("check 6: freed blocks against the oracle", inputs, worst_head(after, want));
    }
  }
}

}  // namespace

std::vector<Case> check_cases() {
  return {{"check1_entry_visibility", entry_visibility},
          {"check1_first_entry_of_ratio_4", first_entry},
          {"check2_decode_equals_prefill", decode_equals_prefill},
          {"check3_sink_limits", sink_limits},
          {"check3_padding_heads", padding_heads},
          {"check4_chunked_prefill", chunked_prefill},
          {"check4_requests_sharing_a_chunk", chunk_of_requests},
          {"check5_poisoned_tails", poisoned_tails},
          {"check6_freed_window_blocks", freed_blocks}};
}

}  // namespace warmgate::numerics
