#include "kernels/numerics/scene.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/metadata.h"
#include "kernels/cpu/sparse_attention.h"
#include "kernels/cpu/topk.h"
#include "kernels/numerics/device.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/visible.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kTail = 0x7E7E7E7E;  // large, and no index
constexpr std::int64_t kRow = Scene::kHeads * 512;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::vector<std::int64_t> entry_counts(const SceneShape& shape) {
  std::vector<std::int64_t> out;
  for (const std::int64_t l : shape.lengths) out.push_back(shape.ratio > 1 ? l / shape.ratio : 0);
  return out;
}

std::int64_t tokens_of(const std::vector<Piece>& pieces) {
  std::int64_t out = 0;
  for (const Piece& piece : pieces) out += piece.count;
  return out;
}

// Lists of indices, `width` apart, with a poisoned tail behind each.
struct Lists {
  Lists(std::int64_t tokens, std::int64_t w)
      : width(w), indices(size(tokens * w), kTail), lens(size(tokens), 0) {}
  void set(std::int64_t token, const std::vector<std::int64_t>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      indices[size(token * width) + i] = static_cast<std::int32_t>(list[i]);
    }
    lens[size(token)] = static_cast<std::int32_t>(list.size());
  }
  [[nodiscard]] std::int64_t below(std::int64_t slot) const {
    std::int64_t out = 0;
    for (std::size_t t = 0; t < lens.size(); ++t) {
      for (std::int64_t i = 0; i < lens[t]; ++i) {
        out += indices[t * size(width) + size(i)] < slot ? 1 : 0;
      }
    }
    return out;
  }
  std::int64_t width;
  std::vector<std::int32_t> indices, lens;
};

}  // namespace

Scene::Scene(Random& random, SceneShape shape)
    : window(Cache::ds_mla(random, shape.lengths, 64)),
      entries(Cache::ds_mla(random, entry_counts(shape), shape.ratio == 128 ? 2 : 64)),
      sinks{static_cast<float>(random.normal()), -kInfinity, kInfinity, 5.0F},
      shape_(std::move(shape)) {
  window.fill_ds_mla(random);
  entries.fill_ds_mla(random);
  for (const std::int64_t length : shape_.lengths) {
    q_.push_back(random.bf16(length * kRow, shape_.query_size));
    chosen_.emplace_back();
    for (std::int64_t p = 0; p < length; ++p) {
      const auto visible = ref::visible_entries(p, shape_.ratio);
      const auto count = static_cast<std::int64_t>(visible.size());
      chosen_.back().push_back(shape_.ratio == 4 ? random.choose(shape_.top_k, count) : visible);
    }
  }
}

std::vector<Piece> Scene::all() const {
  std::vector<Piece> out;
  for (std::size_t r = 0; r < shape_.lengths.size(); ++r) {
    out.push_back({static_cast<std::int64_t>(r), 0, shape_.lengths[r]});
  }
  return out;
}

std::vector<std::int64_t> Scene::chosen(std::int64_t request, std::int64_t position) const {
  return chosen_[size(request)][size(position)];
}

std::vector<Bf16> Scene::queries(const std::vector<Piece>& pieces) const {
  std::vector<Bf16> out;
  for (const Piece& piece : pieces) {
    const auto first = q_[size(piece.request)].begin() + piece.first * kRow;
    out.insert(out.end(), first, first + piece.count * kRow);
  }
  return out;
}

ref::Matrix Scene::oracle(const std::vector<Piece>& pieces) const {
  ref::Matrix out(tokens_of(pieces), kRow);
  const ref::Matrix q = rows_bf16(queries(pieces), kRow);
  std::int64_t token = 0;
  for (const Piece& piece : pieces) {
    // All that the piece may see, decoded once.
    const std::int64_t last = piece.first + piece.count - 1;
    const std::int64_t first = ref::visible_window(piece.first, 128).front();
    const auto all = static_cast<std::int64_t>(ref::visible_entries(last, shape_.ratio).size());
    const ref::Matrix raw =
        ref::ds_mla_rows(window.pages(), window.table(piece.request), first, last - first + 1);
    const ref::Matrix compressed =
        ref::ds_mla_rows(entries.pages(), entries.table(piece.request), 0, all);
    for (std::int64_t p = piece.first; p <= last; ++p, ++token) {
      const auto picked = chosen(piece.request, p);
      const auto seen = ref::visible_window(p, 128);
      ref::Matrix keys(static_cast<std::int64_t>(picked.size() + seen.size()), 512);
      std::int64_t row = 0;
      for (const std::int64_t entry : picked) keys.set_row(row++, compressed.row(entry));
      for (const std::int64_t key : seen) keys.set_row(row++, raw.row(key - first));
      out.set_row(token,
                  ref::attend_heads(q.row(token), keys, from_fp32(sinks), 1 / std::sqrt(512.0)));
    }
  }
  return out;
}

std::vector<Bf16> Scene::decode(const std::vector<Piece>& pieces, bool lists_by_ops) {
  const std::int64_t tokens = tokens_of(pieces);
  const std::int64_t extra_width = shape_.ratio == 4 ? (shape_.top_k + 63) / 64 * 64 : 64;
  Lists near(tokens, 128), far(tokens, extra_width);
  std::vector<std::int64_t> positions;
  std::vector<std::int32_t> requests;
  Lists local(tokens, extra_width);
  for (const Piece& piece : pieces) {
    for (std::int64_t p = piece.first; p < piece.first + piece.count; ++p) {
      const auto token = static_cast<std::int64_t>(positions.size());
      positions.push_back(p);
      requests.push_back(static_cast<std::int32_t>(piece.request));
      local.set(token, chosen(piece.request, p));
      if (lists_by_ops) continue;
      auto keys = ref::visible_window(p, 128);
      for (auto& key : keys) key = window.slot(piece.request, key);
      near.set(token, keys);
      auto picked = chosen(piece.request, p);
      for (auto& entry : picked) entry = entries.slot(piece.request, entry);
      far.set(token, picked);
    }
  }
  if (lists_by_ops) {
    const std::vector<std::uint8_t> valid(size(tokens), 1);
    device()->swa_indices({tokens, 128, 128, positions.data(), requests.data(), valid.data(),
                           window.op_table(), near.indices.data(), near.lens.data()});
    if (shape_.ratio == 128) {
      device()->compressed_indices({tokens, 128, extra_width, positions.data(), requests.data(),
                                    valid.data(), entries.op_table(), far.indices.data(),
                                    far.lens.data()});
    } else if (shape_.ratio == 4) {
      for (auto& index : local.indices) index = index == kTail ? -1 : index;
      device()->global_topk_indices({tokens, extra_width, local.indices.data(), requests.data(),
                                     entries.op_table(), valid.data(), far.indices.data(),
                                     far.lens.data()});
    }
  }
  null_page_uses += near.below(64) + (shape_.ratio > 1 ? far.below(entries.page_rows()) : 0);
  const auto q = queries(pieces);
  Output<Bf16> out(tokens * kRow);
  cpu::SparseDecode p;
  p.tokens = tokens;
  p.heads = kHeads;
  p.width = 128;
  p.q = q.data();
  p.window = window.op();
  p.indices = near.indices.data();
  p.lens = near.lens.data();
  if (shape_.ratio > 1) {
    p.extra_width = extra_width;
    p.extra = entries.op();
    p.extra_indices = far.indices.data();
    p.extra_lens = far.lens.data();
  }
  p.sink = sinks.data();
  p.out = out.data();
  device()->sparse_decode(p);
  overrun += out.overrun();
  return out.copy();
}

std::vector<Bf16> Scene::prefill(const std::vector<Piece>& pieces, std::uint8_t poison) {
  const std::int64_t ratio = shape_.ratio, tokens = tokens_of(pieces);
  std::vector<ref::Request> chunk;
  std::vector<std::int32_t> seq, gather;
  std::int64_t top_k = 0, compressed = 0, raw = 0;
  for (const Piece& piece : pieces) chunk.push_back({piece.count, piece.first + piece.count});
  const auto gathered = ref::gather_lens(chunk, 128);
  std::vector<std::vector<std::int64_t>> topk;
  for (std::size_t b = 0; b < chunk.size(); ++b) {
    seq.push_back(static_cast<std::int32_t>(chunk[b].seq_len));
    gather.push_back(static_cast<std::int32_t>(gathered[b]));
    raw = std::max(raw, gathered[b]);
    if (ratio > 1) compressed = std::max(compressed, chunk[b].seq_len / ratio);
    for (std::int64_t p = pieces[b].first; p < pieces[b].first + pieces[b].count; ++p) {
      topk.push_back(chosen(pieces[b].request, p));
      top_k = std::max(top_k, static_cast<std::int64_t>(topk.back().size()));
    }
  }
  // Two more rows than needed a request, never read.
  const std::int64_t rows = compressed + raw + 2, batch = static_cast<std::int64_t>(chunk.size());
  std::vector<Bf16> kv(size(batch * rows * 512), static_cast<Bf16>(poison * 257));
  // The op walks requests 0..n-1 of a table: hand it the rows of the pieces' requests.
  const auto table_of = [&](const Cache& cache, std::vector<std::int32_t>& entries_of) {
    const cpu::BlockTable own = cache.op_table();
    for (const Piece& piece : pieces) {
      const std::int32_t* row = own.entries + piece.request * own.stride;
      entries_of.insert(entries_of.end(), row, row + own.stride);
    }
    return cpu::BlockTable{entries_of.data(), own.stride, own.page_rows};
  };
  std::vector<std::int32_t> far_entries, near_entries;
  if (ratio > 1) {
    device()->dequant_gather({batch, ratio, 0, rows * 512, seq.data(), nullptr, entries.op(),
                              table_of(entries, far_entries), kv.data()});
  }
  device()->dequant_gather({batch, 1, compressed, rows * 512, seq.data(), gather.data(),
                            window.op(), table_of(window, near_entries), kv.data()});

  Lists lists(tokens, (top_k + 128 + 127) / 128 * 128);
  const auto combined =
      ref::combined_indices(chunk, gathered, topk, ratio, top_k, 128, rows, compressed);
  for (std::size_t t = 0; t < combined.size(); ++t) {
    lists.set(static_cast<std::int64_t>(t), combined[t]);
  }
  const auto q = queries(pieces);
  Output<Bf16> out(tokens * kRow);
  cpu::SparsePrefill p;
  p.tokens = tokens;
  p.heads = kHeads;
  p.width = lists.width;
  p.q = q.data();
  p.kv = kv.data();
  p.indices = lists.indices.data();
  p.lens = lists.lens.data();
  p.sink = sinks.data();
  p.out = out.data();
  device()->sparse_prefill(p);
  overrun += out.overrun();
  return out.copy();
}

}  // namespace warmgate::numerics
