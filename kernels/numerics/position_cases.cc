// RoPE tables and rotations, and the query and window key that they belong to.
#include <fmt/format.h>

#include <cmath>

#include "kernels/cpu/query_key.h"
#include "kernels/cpu/rope.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/paged.h"
#include "kernels/numerics/rope_tables.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/number.h"
#include "kernels/reference/quantise.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

constexpr std::int64_t kRows = 66000;
constexpr std::int64_t kPositions[] = {0,   1,   3,   4,    5,    63,    64,    65,    127,
                                       128, 129, 255, 4095, 4096, 16383, 65535, 65536, 65999};

void tables(Random& random, Table& table) {
  for (const auto& [name, of_layer] :
       {std::pair{"theta 10000, YaRN", ref::rope_of_layer(1, ref::WindowRope::yarn)},
        std::pair{"theta 10000, plain", ref::rope_of_layer(1, ref::WindowRope::plain)},
        std::pair{"theta 160000, YaRN", ref::rope_of_layer(4, ref::WindowRope::yarn)}}) {
    const auto& rope = of_layer;  // a lambda may not capture what a binding names
    const std::vector<float> rows = rope_table(rope, kRows);
    double worst = 0;
    const auto compare = [&](std::int64_t position) {
      const auto row = std::span(rows).subspan(static_cast<std::size_t>(position * 64), 64);
      worst = std::max(worst, ref::row_error(from_fp32(row), ref::cos_sin(rope, position)));
    };
    for (const std::int64_t position : kPositions) compare(position);
    for (int i = 0; i < 50; ++i) compare(random.integer(0, kRows - 1));
    table.error("RoPE table", std::string(name) + ", positions to 65999", worst, 0, 1e-6);
  }
}

void rotations(Random& random, Table& table) {
  const ref::Rope rope = ref::rope_of_layer(128, ref::WindowRope::yarn);
  const std::vector<float> rows = rope_table(rope, 4200);
  double forward = 0, back = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t position = random.integer(0, 4199);
    const auto x = random.fp32(64);
    std::vector<float> there = x, home = x;
    cpu::rotate(there.data(), rows.data() + position * 64);
    cpu::rotate_back(home.data(), rows.data() + position * 64);
    forward = std::max(forward,
                       ref::row_error(from_fp32(there), ref::rotate(from_fp32(x), rope, position)));
    back = std::max(back,
                    ref::row_error(from_fp32(home), ref::unrotate(from_fp32(x), rope, position)));
  }
  table.error("rotation", "40 rows of 64, positions to 4199", forward, 0, 1e-5);
  table.error("inverse rotation", "40 rows of 64, positions to 4199", back, 0, 1e-5);
}

void query_and_key(Random& random, Table& table, const ref::Rope& rope, const char* name,
                   double scale) {
  const std::int64_t heads = 3, padded = 4, length = 260;
  const std::vector<float> rows = rope_table(rope, length);
  const std::vector<std::int64_t> positions{0,   1,   3,   4,   5,   62,  63,  64, 65,
                                            126, 127, 128, 129, 255, 256, 257, 259};
  const auto tokens = static_cast<std::int64_t>(positions.size());
  Cache cache = Cache::ds_mla(random, {length}, 64);
  std::vector<std::int64_t> slots;
  for (const std::int64_t p : positions) slots.push_back(p % 5 == 4 ? -1 : cache.slot(0, p));
  const auto q = random.bf16(tokens * heads * 512, scale);
  const auto kv = random.bf16(tokens * 512, scale);
  Output<Bf16> out(tokens * padded * 512);
  const std::vector<std::uint8_t> before = cache.memory();
  device()->qnorm_rope_insert({tokens, heads, padded, q.data(), kv.data(), rows.data(),
                               positions.data(), slots.data(), cache.op(), out.data(), 1e-6F});

  const ref::Vector in = from_bf16(q);
  double query = 0, key = 0;
  std::int64_t padding = 0, nope = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t p = positions[static_cast<std::size_t>(t)];
    for (std::int64_t h = 0; h < padded; ++h) {
      const ref::Vector got =
          from_bf16(out.view().subspan(static_cast<std::size_t>((t * padded + h) * 512), 512));
      if (h >= heads) {
        for (const double value : got) padding += value == 0 ? 0 : 1;
        continue;
      }
      const ref::View head =
          ref::View(in).subspan(static_cast<std::size_t>((t * heads + h) * 512), 512);
      const ref::Vector want = ref::rotate(ref::rms_norm(head, 1e-6), rope, p);
      query = std::max(query, ref::row_error(got, want));
    }
    if (slots[static_cast<std::size_t>(t)] < 0) continue;
    const ref::Vector want = ref::rotate(rows_bf16(kv, 512).row(t), rope, p);
    const ref::Place at = ref::place(cache.table(0), 64, p);
    const ref::DsMlaRow stored = ref::ds_mla_row(cache.pages().page(at.block), 64, at.row);
    const ref::DsMlaRow encoded = ref::encode_ds_mla(want);
    key = std::max(key,
                   ref::row_error(ref::decode_ds_mla(stored), ref::expected_ds_mla(want, stored)));
    nope +=
        ref::mismatches(ref::Bytes(stored.data).first(448), ref::Bytes(encoded.data).first(448));
    nope += ref::mismatches(stored.scale, encoded.scale);
  }
  const std::string inputs =
      std::string(name) + ", 17 edges to p 259, size " + fmt::format("{:g}", scale);
  table.error("query: head norm, RoPE", inputs, query,
              out.unwritten(0, tokens * padded * 512) + out.overrun());
  table.exact("query: padding heads are zero", inputs, padding);
  table.error("window key as stored", inputs, key, cache.disturbed(before, slots), kStoredLimit);
  table.exact("window key: e4m3 values and scales", inputs, nope);
}

void window_query_and_key(Random& random, Table& table) {
  query_and_key(random, table, ref::rope_of_layer(1, ref::WindowRope::yarn), "theta 1e4, YaRN", 1);
  query_and_key(random, table, ref::rope_of_layer(1, ref::WindowRope::plain), "theta 1e4, plain",
                1);
  query_and_key(random, table, ref::rope_of_layer(4, ref::WindowRope::yarn), "theta 16e4, YaRN", 8);
  // Small heads: eps decides in the norm, the floor in the scale.
  query_and_key(random, table, ref::rope_of_layer(128, ref::WindowRope::yarn), "theta 16e4, YaRN",
                1e-3);
  query_and_key(random, table, ref::rope_of_layer(128, ref::WindowRope::yarn), "theta 16e4, YaRN",
                1e-7);
}

void padded_query(Random& random, Table& table) {
  const std::int64_t tokens = 5, heads = 3, padded = 64;
  const auto q = random.bf16(tokens * heads * 512);
  Output<Bf16> out(tokens * padded * 512);
  device()->pad_q({tokens, heads, padded, q.data(), out.data()});
  std::int64_t differ = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < padded * 512; ++i) {
      const Bf16 want =
          i < heads * 512 ? q[static_cast<std::size_t>(t * heads * 512 + i)] : Bf16{0};
      differ += out[t * padded * 512 + i] == want ? 0 : 1;
    }
  }
  table.exact("query padded only", "T 5, 3 of 64 heads", differ, out.overrun());
}

// What the choice for window-only layers is worth: the two tables really differ.
void window_choice(Random& random, Table& table) {
  const ref::Rope yarn = ref::rope_of_layer(1, ref::WindowRope::yarn);
  const ref::Rope plain = ref::rope_of_layer(1, ref::WindowRope::plain);
  for (const std::int64_t position : {1023, 4095, 65535}) {
    const ref::Vector head = from_bf16(random.bf16(512));
    const double apart =
        ref::row_error(ref::rotate(head, yarn, position), ref::rotate(head, plain, position));
    char text[96];
    std::snprintf(text, sizeof text, "p %ld: heads differ by %.3f", static_cast<long>(position),
                  apart);
    table.exact("window RoPE: YaRN is not plain", text, apart > ref::kRowLimit ? 0 : 1);
  }
}

}  // namespace

std::vector<Case> position_cases() {
  return {{"rope_tables", tables},
          {"rotations", rotations, true},
          {"window_query_and_key", window_query_and_key},
          {"padded_query", padded_query},
          {"window_rope_choice_shows", window_choice, true}};
}

}  // namespace warmgate::numerics
