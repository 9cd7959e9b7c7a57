// For tests: the step of a FakeLayer.
#pragma once

#include "harness/engine/checks/fake_layer.h"
#include "kernels/reference/output.h"
#include "kernels/reference/quantise.h"

namespace warmgate::engine::checks::testing {

inline Tensor FakeLayer::multiply(const char* kernel, const Tensor& x, WeightId id, DType dtype,
                                  Fault fault) {
  const Tensor& w = layers[0].w(id);
  std::vector<std::int64_t> all(static_cast<std::size_t>(w.rows()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const Matrix weights = weight_rows(w, all);
  const Tensor y = memory.make(dtype, {x.rows(), w.rows()});
  for (std::int64_t t = 0; t < x.rows(); ++t) {
    Vector row = reference::project(row_of(x, t), weights);
    if (fault == Fault::kProductColumns) row.back() += 1;
    memory.set(y, t, row);
  }
  numerics_->after(layers[0].ref, ops::Gemm{kernel, x, w, y});
  return y;
}

inline void FakeLayer::store_key(const BoundCache& bound, std::int64_t index,
                                 const reference::DsMlaRow& row) {
  const reference::Place at = place(bound, index);
  std::byte* to = page(bound.view, at.block);
  std::memcpy(to + at.row * 576, row.data.data(), 576);
  std::memcpy(to + bound.view.dim(1) * 576 + at.row * 8, row.scale.data(), 8);
}

inline void FakeLayer::store_index_key(std::int64_t entry, View key) {
  const Tensor& view = layers[0].indexer.view;
  const reference::Place at = place(layers[0].indexer, entry);
  std::byte* to = page(view, at.block);
  if (dims.fp4_indexer) {
    const auto row = reference::encode_indexer_fp4(key);
    std::memcpy(to + at.row * 64, row.data.data(), 64);
    std::memcpy(to + view.dim(1) * 64 + at.row * 4, row.scale.data(), 4);
  } else {
    const auto row = reference::encode_indexer(key);
    std::memcpy(to + at.row * 128, row.data.data(), 128);
    std::memcpy(to + view.dim(1) * 128 + at.row * 4, row.scale.data(), 4);
  }
}

// Random keys, entries and states up to `computed`; of entries one more, as an earlier owner of the
// block may have left it.
inline void FakeLayer::make_history(std::int64_t computed) {
  const LayerState& layer = layers[0];
  auto& random = memory.engine();
  const auto any_row = [&] {
    reference::DsMlaRow row;
    for (std::size_t i = 0; i < 448; ++i) row.data[i] = static_cast<std::byte>(random() % 127);
    for (std::size_t i = 0; i < 448; ++i) row.data[i] |= static_cast<std::byte>(random() % 2 << 7);
    for (auto& s : row.scale) s = std::byte{120};
    row.scale[7] = std::byte{0};
    const Vector rope_part = memory.random(64);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint16_t bits = bf16_bits(rope_part[i]);
      std::memcpy(&row.data[448 + 2 * i], &bits, 2);
    }
    return row;
  };
  const auto any_state = [&](const BoundCache& state, std::int64_t p) {
    const reference::Place at = place(state, p);
    const Tensor rows = make_tensor(DType::kFp32, {state.view.dim(1), state.view.dim(2)},
                                    reinterpret_cast<std::uintptr_t>(page(state.view, at.block)));
    memory.set(rows, at.row, memory.random(state.view.dim(2)));
  };
  for (std::int64_t p = std::max<std::int64_t>(0, computed - 130); p < computed; ++p) {
    store_key(layer.swa, p, any_row());
    if (layer.state.bound()) any_state(layer.state, p);
    if (layer.indexer_state.bound()) any_state(layer.indexer_state, p);
  }
  for (std::int64_t j = 0; ratio > 1 && j <= computed / ratio; ++j) {
    store_key(layer.compressed, j, any_row());
    if (layer.indexer.bound()) store_index_key(j, memory.random(128));
  }
}

inline Vector FakeLayer::entry_of(const BoundCache& state, std::int64_t dim, WeightId norm,
                                  std::int64_t entry) {
  const reference::CompressorShape shape{ratio, dim};
  std::vector<std::optional<Vector>> rows;
  for (const std::int64_t p : reference::pooled_positions(shape, entry)) {
    rows.emplace_back();
    if (p >= 0) rows.back() = state_at(state.view, cache->tables().row(state.group, 0), p);
  }
  return reference::compressed_entry(shape, rows, all_of(layers[0].w(norm)), 1e-6, rope(), entry);
}

inline void FakeLayer::store_entries(std::int64_t computed, std::int64_t query, Fault fault) {
  LayerState& layer = layers[0];
  for (std::int64_t t = 0; t < query; ++t) {
    const std::int64_t p = computed + t;
    const auto save = [&](const BoundCache& state, const Tensor& score, WeightId ape) {
      Vector row = row_of(score, t);
      const Vector offset = row_of(layer.w(ape), p % ratio);
      for (std::size_t c = 0; c < offset.size() && fault != Fault::kStateWithoutApe; ++c) {
        row[row.size() / 2 + c] += offset[c];
      }
      const reference::Place at = place(state, p);
      memory.set(make_tensor(DType::kFp32, {state.view.dim(1), state.view.dim(2)},
                             reinterpret_cast<std::uintptr_t>(page(state.view, at.block))),
                 at.row, row);
    };
    save(layer.state, main_score_, WeightId::kCompressorApe);
    if (layer.indexer.bound()) {
      save(layer.indexer_state, index_score_, WeightId::kIndexerCompressorApe);
    }
  }
  for (std::int64_t p = computed; p < computed + query; ++p) {
    if ((p + 1) % ratio != 0) continue;
    const std::int64_t entry = p / ratio;
    if (fault != Fault::kEntryMissing) {
      store_key(layer.compressed, entry + (fault == Fault::kEntryWrongPlace ? 1 : 0),
                reference::encode_ds_mla(
                    entry_of(layer.state, dims.head_dim, WeightId::kCompressorNorm, entry)));
    }
    if (layer.indexer.bound()) {
      store_index_key(entry, entry_of(layer.indexer_state, dims.index_dim,
                                      WeightId::kIndexerCompressorNorm, entry));
    }
  }
}

inline void FakeLayer::choose(std::int64_t computed, std::int64_t query, Fault fault) {
  const LayerState& layer = layers[0];
  for (std::int64_t t = 0; t < query; ++t) {
    const std::int64_t visible = (computed + t + 1) / 4;
    const Matrix keys = index_keys_at(
        layer.indexer.view, cache->tables().row(layer.indexer.group, 0), visible, dims.fp4_indexer);
    const Vector scores = reference::indexer_scores(row_of(index_q_, t), keys, row_of(index_w_, t));
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t j = 0; j < visible; ++j) {
      order.emplace_back(-scores[static_cast<std::size_t>(j)], j);
    }
    std::sort(order.begin(), order.end());
    Vector row(static_cast<std::size_t>(dims.topk), -1.0);
    const auto count = static_cast<std::size_t>(std::min(dims.topk, visible));
    for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<double>(order[i].second);
    if (count > 0)
      topk_gap =
          (order.back().first - order[count - 1].first) /
          std::max(1e-30, std::max(std::abs(order.front().first), std::abs(order.back().first)));
    if (fault == Fault::kTopkTruncated) row[count - 1] = -1;
    if (fault == Fault::kTopkWorst) row[0] = static_cast<double>(order.back().second);
    if (fault == Fault::kTopkTail) row.back() = 0;
    memory.set(layer.topk_buffer, t, row);
  }
}

inline Matrix FakeLayer::keys_of(std::int64_t p, std::int64_t t, Fault fault) {
  const LayerState& layer = layers[0];
  std::vector<std::int64_t> window = reference::visible_window(p, dims.window), entries;
  if (fault == Fault::kWindowOneShort) window.erase(window.begin());
  if (fault == Fault::kWindowOneLong) window.insert(window.begin(), window.front() - 1);
  if (layer.kind == Kind::kC128a) entries = reference::visible_entries(p, 128);
  if (layer.kind == Kind::kC4a) {
    for (const double j : row_of(layer.topk_buffer, t)) {
      if (j >= 0) entries.push_back(static_cast<std::int64_t>(j));
    }
  }
  if (fault == Fault::kEntryTooEarly) entries.push_back((p + 1) / ratio);
  Matrix compressed(0, dims.head_dim);
  if (ratio > 1) {
    compressed =
        keys_at(layer.compressed.view, cache->tables().row(layer.compressed.group, 0), entries);
  }
  return reference::stacked(
      compressed, keys_at(layer.swa.view, cache->tables().row(layer.swa.group, 0), window));
}

inline void FakeLayer::run(std::int64_t computed, std::int64_t query, Fault fault) {
  using enum WeightId;
  LayerState& layer = layers[0];
  const Tensor positions = memory.make(DType::kI64, {query});
  const Tensor x = memory.random_rows(DType::kBf16, {query, dims.hidden}, 1);
  const Tensor qkv = multiply("fused_wqa_wkv_gemm", x, kFusedWqaWkv, DType::kBf16, fault);
  if (ratio > 1)
    main_score_ = multiply("compressor_gemm_fp32", x, kCompressorWkvWgate, DType::kFp32);
  Tensor weights;
  if (ratio == 4) {
    weights = multiply("indexer_weights_proj", x, kIndexerWeightsProj, DType::kBf16);
    index_score_ =
        multiply("indexer_compressor_gemm_fp32", x, kIndexerCompressorWkvWgate, DType::kFp32);
  }
  const Tensor qr = memory.make(DType::kBf16, {query, dims.q_lora});
  const Tensor kv = memory.make(DType::kBf16, {query, dims.head_dim});
  for (std::int64_t t = 0; t < query; ++t) {
    const Vector in = row_of(qkv, t);
    const auto lora = static_cast<std::size_t>(dims.q_lora);
    memory.set(qr, t, reference::rms_norm(View(in).first(lora), all_of(layer.w(kQNorm)), 1e-6));
    memory.set(kv, t, reference::rms_norm(View(in).subspan(lora), all_of(layer.w(kKvNorm)), 1e-6));
  }
  numerics_->after(layer.ref, ops::FusedQkvNorm{qkv, layer.w(kQNorm), layer.w(kKvNorm), qr, kv});
  const Tensor flat = multiply("wq_b_gemm", qr, kWqB, DType::kBf16);
  const Tensor q = make_tensor(DType::kBf16, {query, dims.rank_heads, dims.head_dim}, flat.address);
  const Tensor padded = memory.make(DType::kBf16, {query, dims.padded_heads, dims.head_dim});
  for (std::int64_t t = 0; t < query; ++t) {
    const std::int64_t p = computed + t;
    const Vector normed = reference::norm_heads(row_of(q, t), dims.head_dim, 1e-6);
    Vector heads = reference::rotate_heads(normed, dims.head_dim, rope(), p);
    if (fault == Fault::kHeadNotRotated) {
      std::copy(normed.begin() + 512, normed.begin() + 1024, heads.begin() + 512);
    }
    heads.resize(static_cast<std::size_t>(dims.padded_heads * dims.head_dim), 0.0);
    if (fault == Fault::kPaddingHeads) heads.back() = 1;
    memory.set(padded, t, heads);
    Vector key = row_of(kv, t);
    if (fault != Fault::kKeyNotRotated) key = reference::rotate(key, rope(), p);
    store_key(layer.swa, fault == Fault::kKeyWrongSlot && p > 0 ? p - 1 : p,
              reference::encode_ds_mla(key));
  }
  numerics_->after(layer.ref,
                   ops::QNormRopeInsert{q, kv, layer.cos_sin, layer.swa.view,
                                        cache->slots(layer.swa.group), positions, padded});
  if (ratio > 1) store_entries(computed, query, fault);
  if (ratio == 4) {
    const std::int64_t dim = dims.index_dim, heads = dims.index_heads;
    const Tensor iq = multiply("indexer_wq_b_gemm", qr, kIndexerWqB, DType::kBf16);
    index_q_ = memory.make(DType::kFp32, {query, heads * dim});  // what the codes stand for
    index_w_ = memory.make(DType::kFp32, {query, heads});
    const Tensor codes =
        memory.make(dims.fp4_indexer ? DType::kFp4 : DType::kFp8, {query, heads, dim});
    const Tensor scales = memory.make(DType::kU8, {query, heads, dim / 32});
    for (std::int64_t t = 0; t < query; ++t) {
      const Vector exact =
          reference::bf16(reference::rotate_heads(row_of(iq, t), dim, rope(), computed + t));
      Vector values, scale(static_cast<std::size_t>(heads), 1.0);
      if (dims.fp4_indexer) {
        for (std::size_t at = 0; at < exact.size(); at += 32) {
          const auto run = reference::quantise_e2m1(View(exact).subspan(at, 32));
          values.insert(values.end(), run.values.begin(), run.values.end());
          std::byte* to = memory.at(codes) + (t * heads * dim + static_cast<std::int64_t>(at)) / 2;
          for (std::size_t i = 0; i < 32; i += 2) {
            to[i / 2] = static_cast<std::byte>(run.codes[i] + 16 * run.codes[i + 1]);
          }
          memory.at(scales)[(t * heads * dim + static_cast<std::int64_t>(at)) / 32] =
              std::byte{reference::ue8m0_code(run.exponent)};
        }
      } else {
        scale.clear();
        for (const auto& head : reference::quantise_indexer_query(exact, dim)) {
          values.insert(values.end(), head.unscaled.begin(), head.unscaled.end());
          scale.push_back(head.scale());
        }
        memory.set(codes, t, values);
      }
      memory.set(index_q_, t, values);
      memory.set(index_w_, t, reference::indexer_weights(row_of(weights, t), dim, scale));
    }
    numerics_->after(layer.ref,
                     ops::IndexerQuant{"indexer_q_rope_quant",
                                       make_tensor(DType::kBf16, {query, heads, dim}, iq.address),
                                       weights, codes, index_w_, layer.cos_sin, positions, scales});
    choose(computed, query, fault);
  }
  const Tensor out = memory.make(DType::kBf16, {query, dims.padded_heads, dims.head_dim});
  Vector sinks = all_of(layer.w(kAttnSink));
  sinks.resize(static_cast<std::size_t>(dims.rank_heads));
  if (fault == Fault::kNoSink) sinks.assign(sinks.size(), -INFINITY);
  const auto real = static_cast<std::size_t>(dims.rank_heads * dims.head_dim);
  const Tensor operand =
      memory.make(DType::kFp8, {query, dims.rank_groups, static_cast<std::int64_t>(real) / 2});
  const Tensor scales =
      memory.make(DType::kFp32, {query, dims.rank_groups, static_cast<std::int64_t>(real) / 256});
  for (std::int64_t t = 0; t < query; ++t) {
    const Matrix keys = keys_of(computed + t, t, fault);
    const Vector heads = row_of(padded, t);
    Vector row = reference::attend_heads(View(heads).first(real), keys, sinks,
                                         1 / std::sqrt(double(dims.head_dim)));
    if (fault != Fault::kNanOutput || t != query - 1) memory.set(out, t, row);
    if (fault == Fault::kNanOutput) row.assign(row.size(), 0);
    const Vector back =
        reference::unrotate_heads(reference::bf16(row), dims.head_dim, rope(), computed + t);
    Vector codes, scale;
    for (std::size_t at = 0; at < back.size(); at += 128) {
      const auto run = reference::quantise_e4m3(View(back).subspan(at, 128), 1e-10);
      codes.insert(codes.end(), run.unscaled.begin(), run.unscaled.end());
      scale.push_back(run.scale() * (fault == Fault::kOperandScale ? 2 : 1));
    }
    memory.set(operand, t, codes);
    memory.set(scales, t, scale);
  }
  if (fault == Fault::kFreedBlock) cache->tables().free_window(0, computed + query + 127);
  numerics_->after(layer.ref,
                   ops::InverseRopeQuant{out, layer.cos_sin, positions, operand, scales});
}

}  // namespace warmgate::engine::checks::testing
