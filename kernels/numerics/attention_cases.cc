// Attention of the three layer kinds, both forms, against the oracle over keys found by position.
#include <cmath>
#include <limits>

#include "kernels/cpu/metadata.h"
#include "kernels/cpu/sparse_attention.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/scene.h"
#include "kernels/reference/number.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

constexpr std::int64_t kRow = Scene::kHeads * 512;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Tokens whose positions lie around entry, window and page edges; steps start anywhere.
const std::vector<std::int64_t> kLengths{1, 6, 66, 130, 259, 391};
const std::vector<Piece> kPieces{{0, 0, 1},   {1, 0, 6},   {2, 61, 5},  {3, 125, 5},
                                 {4, 253, 6}, {5, 317, 3}, {5, 382, 3}, {5, 390, 1}};

const char* kind(std::int64_t ratio) {
  return ratio == 1 ? "swaonly" : ratio == 4 ? "c4a, K 8" : "c128a";
}

template <std::int64_t ratio>
void both_forms(Random& random, Table& table) {
  for (const double size : {1.0, 6.0}) {
    Scene scene(random, {ratio, 8, kLengths, size});
    const ref::Matrix want = scene.oracle(kPieces);
    const std::string inputs = std::string(kind(ratio)) + ", 32 tokens at edges to 390, q size " +
                               std::to_string(static_cast<int>(size));
    const auto compare = [&](const char* step, const std::vector<Bf16>& out) {
      // Head by head: one head's error must not hide behind the others' size.
      ref::Matrix got(want.rows * Scene::kHeads, 512, from_bf16(out));
      ref::Matrix heads(want.rows * Scene::kHeads, 512, want.values);
      table.error(step, inputs, ref::worst_row(got, heads).error, scene.overrun);
    };
    compare("attention, decode", scene.decode(kPieces));
    compare("attention, decode, lists by ops", scene.decode(kPieces, true));
    compare("attention, prefill", scene.prefill(kPieces));
  }
}

void alone(Random& random, Table& table) {
  for (const std::int64_t ratio : {1, 4, 128}) {
    Scene scene(random, {ratio, 8, kLengths, 1});
    std::vector<Bf16> one_by_one, prefill_alone;
    for (const Piece& piece : kPieces) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const std::vector<Piece> token{{piece.request, piece.first + i, 1}};
        for (const Bf16 v : scene.decode(token)) one_by_one.push_back(v);
        for (const Bf16 v : scene.prefill(token)) prefill_alone.push_back(v);
      }
    }
    same_sums(table, "attention: batched = alone, decode", kind(ratio), scene.decode(kPieces),
              one_by_one, 512, scene.overrun);
    same_sums(table, "attention: batched = alone, prefill", kind(ratio), scene.prefill(kPieces),
              prefill_alone, 512, scene.overrun);
  }
}

// No keys: zeros. Indices that are negative are no keys either.
void no_keys(Random& random, Table& table) {
  Cache cache = Cache::ds_mla(random, {70}, 64);
  cache.fill_ds_mla(random);
  const std::int64_t tokens = 3, width = 64;
  const auto q = random.bf16(tokens * 2 * 512);
  const auto kv = random.bf16(70 * 512);
  std::vector<std::int32_t> indices(static_cast<std::size_t>(tokens * width), 0x7E7E7E7E);
  std::fill(indices.begin() + width, indices.begin() + 2 * width, -1);
  const std::vector<std::int32_t> lens{0, 64, 0};
  const std::vector<float> sink{-kInfinity, 0.5F};
  Output<Bf16> decoded(tokens * 1024), filled(tokens * 1024);
  cpu::SparseDecode d;
  d.tokens = tokens;
  d.heads = 2;
  d.width = width;
  d.q = q.data();
  d.window = cache.op();
  d.indices = indices.data();
  d.lens = lens.data();
  d.sink = sink.data();
  d.out = decoded.data();
  device()->sparse_decode(d);
  device()->sparse_prefill({tokens, 2, width, q.data(), kv.data(), indices.data(), lens.data(),
                            sink.data(), filled.data()});
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < tokens * 1024; ++i) {
    differ += ref::bf16_value(decoded[i]) == 0 ? 0 : 1;
    differ += ref::bf16_value(filled[i]) == 0 ? 0 : 1;
  }
  table.exact("attention: no keys give zeros", "lens 0; only negative indices", differ,
              decoded.overrun() + filled.overrun());
}

struct PaddedWindow {
  Cache cache;
  std::vector<std::int32_t> indices, lens;
  std::int64_t tokens = 5, width;
};

// Five draft tokens behind 128 keys, all keys 1: every output is 1, whatever the list is padded to.
PaddedWindow padded_window(Random& random, std::int64_t width) {
  PaddedWindow w{Cache::ds_mla(random, {205}, 64), {}, {}, 5, width};
  for (std::int64_t p = 0; p < 205; ++p)
    w.cache.put_ds_mla(0, p, ref::Vector(512, p < 72 ? 0.0 : 1.0));
  const std::vector<std::int32_t> starts{0, 5}, seq{205}, requests(5, 0);
  const std::vector<std::uint8_t> valid(5, 1);
  w.indices.resize(static_cast<std::size_t>(5 * width));
  w.lens.resize(5);
  device()->noncausal_swa_indices({5, 128, width, starts.data(), seq.data(), requests.data(),
                                   valid.data(), w.cache.op_table(), w.indices.data(),
                                   w.lens.data()});
  return w;
}

// Rows outside the block hold zeros: padding that is attended to drags the result down.
void padded_draft_window(Random& random, Table& table) {
  for (const std::int64_t width : {192, 256}) {
    PaddedWindow w = padded_window(random, width);
    std::int64_t lens = 0;
    for (const std::int32_t l : w.lens) lens += l == 133 ? 0 : 1;
    table.exact("padded window: 133 valid keys", "width " + std::to_string(width), lens);
    const auto slot_of_zero = static_cast<std::int32_t>(w.cache.slot(0, 3));
    const auto q = random.bf16(5 * 2 * 512);
    const std::vector<float> sink(2, -kInfinity);
    for (const bool stale : {false, true}) {
      // The tail: -1 as the builder leaves it, or slots of an earlier step.
      if (stale) {
        for (std::int64_t t = 0; t < 5; ++t) {
          for (std::int64_t i = 133; i < width; ++i) {
            w.indices[static_cast<std::size_t>(t * width + i)] = slot_of_zero;
          }
        }
      }
      Output<Bf16> decoded(5 * 1024), filled(5 * 1024);
      cpu::SparseDecode d;
      d.tokens = 5;
      d.heads = 2;
      d.width = width;
      d.q = q.data();
      d.window = w.cache.op();
      d.indices = w.indices.data();
      d.lens = w.lens.data();
      d.sink = sink.data();
      d.out = decoded.data();
      device()->sparse_decode(d);
      // The same rows as a workspace, by slot.
      std::vector<Bf16> kv(static_cast<std::size_t>(300 * 512), Bf16{0});
      std::vector<std::int32_t> rows = w.indices;
      for (std::int64_t i = 0; i < 133; ++i) {
        std::fill(kv.begin() + i * 512, kv.begin() + (i + 1) * 512, ref::bf16_code(1));
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto column = static_cast<std::int32_t>(i) % static_cast<std::int32_t>(width);
        rows[i] = column < 133 ? column : (stale ? 133 + column % 50 : -1);
      }
      device()->sparse_prefill({5, 2, width, q.data(), kv.data(), rows.data(), w.lens.data(),
                                sink.data(), filled.data()});
      const std::vector<Bf16> ones(5 * 1024, ref::bf16_code(1));
      const std::string inputs = "133 of " + std::to_string(width) + ", constant 1, sink -inf" +
                                 (stale ? ", stale tail" : ", tail -1");
      same_sums(table, "padded window = 1, decode", inputs, decoded.copy(), ones, 512);
      same_sums(table, "padded window = 1, prefill", inputs, filled.copy(), ones, 512);
    }
  }
  // And the defect would show: padding counted as keys, equal scores, gives 133/256.
  PaddedWindow w = padded_window(random, 256);
  for (auto& index : w.indices) {
    if (index < 0) index = static_cast<std::int32_t>(w.cache.slot(0, 3));
  }
  std::fill(w.lens.begin(), w.lens.end(), 256);
  const std::vector<Bf16> q(5 * 512, Bf16{0});
  const std::vector<float> sink{-kInfinity};
  Output<Bf16> out(5 * 512);
  cpu::SparseDecode d;
  d.tokens = 5;
  d.heads = 1;
  d.width = 256;
  d.q = q.data();
  d.window = w.cache.op();
  d.indices = w.indices.data();
  d.lens = w.lens.data();
  d.sink = sink.data();
  d.out = out.data();
  device()->sparse_decode(d);
  table.exact("padded window: the defect gives 133/256", "padding counted as keys",
              std::fabs(ref::bf16_value(out[0]) - 133.0 / 256) < 0.002 ? 0 : 1);
}

}  // namespace

std::vector<Case> attention_cases() {
  return {{"attention_swaonly", both_forms<1>}, {"attention_c4a", both_forms<4>},
          {"attention_c128a", both_forms<128>}, {"attention_alone_equals_batched", alone},
          {"attention_no_keys", no_keys},       {"padded_draft_window", padded_draft_window}};
}

}  // namespace warmgate::numerics
