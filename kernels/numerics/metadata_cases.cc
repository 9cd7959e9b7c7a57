// Index lists and lengths, element by element from positions and tables. All exact.
#include "kernels/cpu/metadata.h"

#include "kernels/cpu/topk.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/paged.h"
#include "kernels/reference/visible.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

// A batch: requests of several lengths, the last tokens of each in this step.
struct Batch {
  explicit Batch(Random& random) {
    lengths = {1, 4, 65, 130, 259, 300, 513};
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      const std::int64_t query = random.integer(1, std::min<std::int64_t>(lengths[r], 140));
      for (std::int64_t p = lengths[r] - query; p < lengths[r]; ++p) {
        positions.push_back(p);
        requests.push_back(static_cast<std::int32_t>(r));
        valid.push_back(random.integer(0, 9) == 0 ? 0 : 1);
      }
      starts.push_back(starts.back() + static_cast<std::int32_t>(query));
      seq.push_back(static_cast<std::int32_t>(lengths[r]));
    }
  }
  [[nodiscard]] std::int64_t tokens() const { return static_cast<std::int64_t>(positions.size()); }
  std::vector<std::int64_t> lengths, positions;
  std::vector<std::int32_t> requests, starts{0}, seq;
  std::vector<std::uint8_t> valid;
};

// Compares the first entries of row t with `want`, the rest with `tail`.
std::int64_t row_differs(const Output<std::int32_t>& got, std::int64_t t, std::int64_t width,
                         const std::vector<std::int64_t>& want, std::int32_t tail) {
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::int64_t expected = index < want.size() ? want[index] : tail;
    out += got[t * width + i] == expected ? 0 : 1;
  }
  return out;
}

void tokens_and_slots(Random& random, Table& table) {
  const Batch batch(random);
  const std::int64_t tokens = batch.tokens(), padded = tokens + 7;
  for (const std::int64_t ratio : {1, 4, 128}) {
    const std::int64_t page_rows = ratio == 1 ? 64 : 256 / ratio;
    std::vector<std::int64_t> rows;
    for (const std::int64_t l : batch.lengths) rows.push_back(l / ratio + 1);
    Cache cache = Cache::ds_mla(random, rows, page_rows);
    Output<std::int64_t> slots(padded);
    device()->slot_mapping({tokens, padded, ratio, batch.positions.data(), batch.requests.data(),
                            cache.op_table(), slots.data()});
    std::int64_t differ = 0;
    for (std::int64_t t = 0; t < padded; ++t) {
      std::int64_t want = -1;
      if (t < tokens) {
        const auto i = static_cast<std::size_t>(t);
        const auto own = cache.table(batch.requests[i]);
        want = ratio == 1 ? ref::slot(own, 64, batch.positions[i])
                          : ref::compressed_slot(own, 256, ratio, batch.positions[i]);
      }
      differ += slots[t] == want ? 0 : 1;
    }
    table.exact("slot mapping", "ratio " + std::to_string(ratio) + ", 7 requests, 7 padding tokens",
                differ, slots.overrun());
  }
  std::vector<std::int64_t> slots;
  for (std::int64_t t = 0; t < padded; ++t) {
    slots.push_back(t < tokens && batch.valid[static_cast<std::size_t>(t)] != 0 ? t : -1);
  }
  Output<std::int32_t> request(padded);
  Output<std::uint8_t> valid(padded, 0x5B);
  device()->token_to_req({padded, static_cast<std::int64_t>(batch.lengths.size()),
                          batch.starts.data(), slots.data(), request.data(), valid.data()});
  std::int64_t differ = 0;
  for (std::int64_t t = 0; t < padded; ++t) {
    const auto i = static_cast<std::size_t>(t);
    differ += request[t] == (t < tokens ? batch.requests[i] : 0) ? 0 : 1;
    differ += valid[t] == (slots[i] >= 0 ? 1 : 0) ? 0 : 1;
  }
  table.exact("request and validity of tokens", "7 requests, 7 padding tokens", differ,
              request.overrun() + valid.overrun());
}

void windows(Random& random, Table& table) {
  const Batch batch(random);
  const std::int64_t tokens = batch.tokens();
  Cache cache = Cache::ds_mla(random, batch.lengths, 64);
  Output<std::int32_t> causal(tokens * 128), causal_lens(tokens), block(tokens * 320),
      block_lens(tokens);
  device()->swa_indices({tokens, 128, 128, batch.positions.data(), batch.requests.data(),
                         batch.valid.data(), cache.op_table(), causal.data(), causal_lens.data()});
  device()->noncausal_swa_indices({tokens, 128, 320, batch.starts.data(), batch.seq.data(),
                                   batch.requests.data(), batch.valid.data(), cache.op_table(),
                                   block.data(), block_lens.data()});
  std::int64_t differ = 0, differ_block = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const std::int32_t r = batch.requests[i];
    const auto in_slots = [&](std::vector<std::int64_t> keys) {
      for (std::int64_t& key : keys) key = cache.slot(r, key);
      return keys;
    };
    const bool valid = batch.valid[i] != 0;
    const std::int64_t query =
        batch.starts[static_cast<std::size_t>(r) + 1] - batch.starts[static_cast<std::size_t>(r)];
    const std::int64_t seq = batch.lengths[static_cast<std::size_t>(r)];
    const auto own = in_slots(ref::visible_window(batch.positions[i], 128));
    const auto all = in_slots(ref::visible_draft_block(seq - query, seq, 128));
    differ += causal_lens[t] == (valid ? static_cast<std::int64_t>(own.size()) : 0) ? 0 : 1;
    differ_block += block_lens[t] == (valid ? static_cast<std::int64_t>(all.size()) : 0) ? 0 : 1;
    // Rows of tokens without a slot are left as they were.
    differ += valid ? row_differs(causal, t, 128, own, -1) : causal.written(t * 128, 128);
    differ_block += valid ? row_differs(block, t, 320, all, -1) : block.written(t * 320, 320);
  }
  table.exact("window indices", "7 requests to 513, some tokens invalid", differ,
              causal.overrun() + causal_lens.overrun());
  table.exact("window indices of draft blocks", "7 requests to 513, some tokens invalid",
              differ_block, block.overrun() + block_lens.overrun());
}

void entries(Random& random, Table& table) {
  const Batch batch(random);
  const std::int64_t tokens = batch.tokens();
  for (const std::int64_t ratio : {4, 128}) {
    const std::int64_t width = 192;
    std::vector<std::int64_t> rows;
    for (const std::int64_t l : batch.lengths) rows.push_back(l / ratio + 1);
    Cache cache = Cache::ds_mla(random, rows, 256 / ratio);
    Output<std::int32_t> global(tokens * width), lens(tokens), local(tokens * width), seen(tokens);
    device()->compressed_indices({tokens, ratio, width, batch.positions.data(),
                                  batch.requests.data(), batch.valid.data(), cache.op_table(),
                                  global.data(), lens.data()});
    device()->compressed_indices({tokens,
                                  ratio,
                                  width,
                                  batch.positions.data(),
                                  batch.requests.data(),
                                  batch.valid.data(),
                                  {},
                                  local.data(),
                                  nullptr});
    device()->visible_entries({tokens, ratio, batch.positions.data(), seen.data()});
    Output<std::int32_t> chosen(tokens * width), chosen_lens(tokens);
    device()->global_topk_indices({tokens, width, local.data(), batch.requests.data(),
                                   cache.op_table(), batch.valid.data(), chosen.data(),
                                   chosen_lens.data()});
    std::int64_t differ = 0, differ_local = 0, differ_chosen = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto i = static_cast<std::size_t>(t);
      const auto visible = ref::visible_entries(batch.positions[i], ratio);
      const auto count = static_cast<std::int64_t>(visible.size());
      std::vector<std::int64_t> slots;
      for (const std::int64_t j : visible) slots.push_back(cache.slot(batch.requests[i], j));
      const bool valid = batch.valid[i] != 0;
      differ += seen[t] == count ? 0 : 1;
      differ += lens[t] == (valid ? count : 0) ? 0 : 1;
      if (valid) differ += row_differs(global, t, width, slots, -1);
      differ_local += row_differs(local, t, width, visible, -1);
      differ_chosen += row_differs(chosen, t, width, slots, -1);
      differ_chosen += chosen_lens[t] == (valid ? count : 0) ? 0 : 1;
    }
    const std::string inputs = "ratio " + std::to_string(ratio) + ", 7 requests to 513";
    table.exact("visible entries: slots and lengths", inputs, differ,
                global.overrun() + lens.overrun() + seen.overrun());
    table.exact("visible entries: local", inputs, differ_local, local.overrun());
    table.exact("chosen entries -> slots", inputs, differ_chosen,
                chosen.overrun() + chosen_lens.overrun());
  }
}

void expanded(Random& random, Table& table) {
  const Batch batch(random);
  Cache cache = Cache::ds_mla(random, batch.lengths, 64);
  const std::int64_t width = 5, tokens = batch.tokens();
  Output<std::int32_t> rows(tokens * width);
  const cpu::BlockTable op = cache.op_table();
  device()->expand_table({tokens, width, batch.requests.data(), op, rows.data()});
  std::int64_t differ = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < width; ++i) {
      differ += rows[t * width + i] ==
                        op.entries[batch.requests[static_cast<std::size_t>(t)] * op.stride + i]
                    ? 0
                    : 1;
    }
  }
  table.exact("table row per token", "7 requests", differ, rows.overrun());
}

}  // namespace

std::vector<Case> metadata_cases() {
  return {{"tokens_and_slots", tokens_and_slots},
          {"window_indices", windows},
          {"entry_indices", entries},
          {"expanded_table", expanded}};
}

}  // namespace warmgate::numerics
