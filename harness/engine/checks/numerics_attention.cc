// Attention: query, window key and indexer query as they are made; at its end, when all that the
// layer stores is in place, what was stored, which entries were chosen, the output, its operand.
#include <algorithm>
#include <cmath>

#include "harness/engine/checks/numerics.h"
#include "harness/engine/checks/read.h"
#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/indexer.h"
#include "harness/engine/ops/output_projection.h"
#include "harness/engine/ops/query_key.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/number.h"
#include "kernels/reference/quantise.h"
#include "kernels/reference/visible.h"

namespace warmgate::engine::checks {

using reference::View;

namespace {

constexpr std::int64_t kHeads = 3;  // of the attention output, where not all are compared

// The first `heads` of [T,padded,D], seen as rows.
Tensor real_heads(const Tensor& padded, std::int64_t heads) {
  Tensor out = make_tensor(padded.dtype, {padded.rows(), heads * padded.last()}, padded.address);
  out.strides[0] = padded.strides[0];
  return out;
}

View head_of(View heads, std::int64_t dim, std::int64_t head) {
  return heads.subspan(static_cast<std::size_t>(head * dim), static_cast<std::size_t>(dim));
}

}  // namespace

void Numerics::after(const LayerRef& layer, const ops::FusedQkvNorm& op) {
  if (!watching(layer)) return;
  const Vector q_norm = all_of(op.q_norm), kv_norm = all_of(op.kv_norm);
  const auto lora = static_cast<std::size_t>(op.qr.last());
  kv_ = rows_of(op.kv, tokens_);
  check("qkv_norm", layer, [&](Comparison& c) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Vector in = row_of(op.qkv, tokens_[i]);
      row(c, row_of(op.qr, tokens_[i]), reference::rms_norm(View(in).first(lora), q_norm, eps_));
      row(c, kv_.row(static_cast<std::int64_t>(i)),
          reference::rms_norm(View(in).subspan(lora), kv_norm, eps_));
    }
    poison(c, op.qr, op.rows());
    poison(c, op.kv, op.rows());
  });
}

void Numerics::after(const LayerRef& ref, const ops::QNormRopeInsert& op) {
  if (!watching(ref)) return;
  const LayerState& layer = state_of(ref);
  const std::int64_t heads = op.q.dim(1), dim = op.q.last();
  const auto real = static_cast<std::size_t>(heads * dim);
  query_ = Matrix(static_cast<std::int64_t>(tokens_.size()), heads * dim);
  check("query", ref, [&](Comparison& c) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::int64_t t = tokens_[i];
      const Vector out = row_of(op.q_out, t);
      query_.set_row(static_cast<std::int64_t>(i), View(out).first(real));
      const Vector right = reference::rotate_heads(
          reference::norm_heads(row_of(op.q, t), dim, eps_), dim, rope(layer), position(t));
      // Head by head: one that was left out must not hide among the others.
      for (std::int64_t head = 0; head < heads; ++head) {
        row(c, head_of(out, dim, head), head_of(right, dim, head));
      }
      for (std::size_t k = real; k < out.size(); ++k) c.mismatches += out[k] == 0 ? 0 : 1;
    }
    c.rows = static_cast<std::int64_t>(tokens_.size());
    poison(c, op.q_out, op.rows());
  });
}

void Numerics::after(const LayerRef& ref, const ops::IndexerQuant& op) {
  if (!watching(ref)) return;
  const LayerState& layer = state_of(ref);
  const std::int64_t heads = op.iq.dim(1), dim = op.iq.last();
  const auto n = static_cast<std::int64_t>(tokens_.size());
  index_query_ = Matrix(n, heads * dim);
  index_weights_ = rows_of(op.w, tokens_);
  check("indexer_query", ref, [&](Comparison& c) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t t = tokens_[static_cast<std::size_t>(i)];
      const Vector exact = reference::rotate_heads(row_of(op.iq, t), dim, rope(layer), position(t));
      Vector stored, right, scales;
      if (dims_.fp4_indexer) {
        stored = fp4_row(op.q, op.q_scales, t);
        for (std::size_t at = 0; at < exact.size(); at += 32) {
          const auto run = reference::quantise_e2m1(reference::bf16(View(exact).subspan(at, 32)));
          right.insert(right.end(), run.values.begin(), run.values.end());
        }
        scales.assign(static_cast<std::size_t>(heads), 1.0);
      } else {
        stored = row_of(op.q, t);
        for (const auto& head : reference::quantise_indexer_query(reference::bf16(exact), dim)) {
          right.insert(right.end(), head.unscaled.begin(), head.unscaled.end());
          scales.push_back(head.scale());
        }
      }
      index_query_.set_row(i, stored);
      row(c, stored, right);
      row(c, index_weights_.row(i), reference::indexer_weights(row_of(op.weights, t), dim, scales));
    }
    c.rows = n;
    poison(c, op.q, op.rows());
    poison(c, op.w, op.rows());
  });
}

// The end of a layer's attention. In a dummy step nothing is stored, and there is nothing to see.
void Numerics::after(const LayerRef& ref, const ops::InverseRopeQuant& op) {
  if (!watching(ref)) return;
  const LayerState& layer = state_of(ref);
  if (!step_->dummy) {
    check_window_key(ref);
    if (layer.ratio > 1) {
      check_state(ref, "compressor_state", layer.state, layer.w(WeightId::kCompressorApe),
                  main_score_);
      check_entries(ref);
    }
    if (layer.kind == Kind::kC4a) {
      check_state(ref, "indexer_state", layer.indexer_state,
                  layer.w(WeightId::kIndexerCompressorApe), index_score_);
      check_index_keys(ref);
      check_topk(ref);
    }
  }
  check_attention(ref, op);
  check_operand(ref, op);
}

void Numerics::check_topk(const LayerRef& ref) {
  const LayerState& layer = state_of(ref);
  check("topk", ref, [&](Comparison& c) {
    c.exact = true;
    const std::int64_t k = layer.topk_buffer.last();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::int64_t t = tokens_[i], visible = (position(t) + 1) / 4;
      Vector scores(static_cast<std::size_t>(visible), 0.0);
      double largest = 0;
      if (visible > k) {  // else all are chosen, whatever they score
        const Matrix keys = index_keys_at(layer.indexer.view, table(layer.indexer.group, t),
                                          visible, dims_.fp4_indexer);
        scores = reference::indexer_scores(index_query_.row(static_cast<std::int64_t>(i)), keys,
                                           index_weights_.row(static_cast<std::int64_t>(i)));
        for (const double s : scores) largest = std::max(largest, std::abs(s));
      }
      std::vector<std::int32_t> chosen;
      for (const double index : row_of(layer.topk_buffer, t)) {
        chosen.push_back(static_cast<std::int32_t>(index));
      }
      ++c.rows;
      const std::string wrong = reference::judge_topk(scores, k, chosen, 1e-4 * largest);
      if (wrong.empty()) continue;
      ++c.mismatches;
      c.message = "position " + std::to_string(position(t)) + ": " + wrong;
    }
  });
}

reference::Matrix Numerics::attended_keys(const LayerState& layer, std::int64_t token) const {
  const std::int64_t p = position(token);
  Matrix compressed(0, dims_.head_dim);
  if (layer.ratio > 1) {
    std::vector<std::int64_t> entries = reference::visible_entries(p, layer.ratio);
    const auto visible = static_cast<std::int64_t>(entries.size());
    if (layer.kind == Kind::kC4a && visible > layer.topk_buffer.last()) {
      // The choice is judged by itself; here it is given.
      entries.clear();
      for (const double index : row_of(layer.topk_buffer, token)) {
        const auto entry = static_cast<std::int64_t>(index);
        if (entry >= 0 && entry < visible) entries.push_back(entry);
      }
    }
    compressed = keys_at(layer.compressed.view, table(layer.compressed.group, token), entries);
  }
  return reference::stacked(compressed, keys_at(layer.swa.view, table(layer.swa.group, token),
                                                reference::visible_window(p, dims_.window)));
}

void Numerics::check_attention(const LayerRef& ref, const ops::InverseRopeQuant& op) {
  const LayerState& layer = state_of(ref);
  const std::int64_t dim = op.o.last();
  check("attention", ref, [&](Comparison& c) {
    c.limit = kOneRounding;
    poison(c, real_heads(op.o, dims_.rank_heads), op.rows());
    const Vector sinks = all_of(layer.w(WeightId::kAttnSink));
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::int64_t t = tokens_[i];
      const Vector out = row_of(op.o, t);
      // A dummy step's tokens see no keys, or those of the null block, which stays zero.
      const Matrix keys = step_->dummy ? Matrix(0, dim) : attended_keys(layer, t);
      const View query = query_.row(static_cast<std::int64_t>(i));
      for (const std::int64_t head :
           spread(dims_.rank_heads, most(kHeads), salt(ref) + static_cast<std::uint64_t>(t))) {
        row(c, head_of(out, dim, head),
            reference::attend(head_of(query, dim, head), keys,
                              sinks[static_cast<std::size_t>(head)], scale));
      }
    }
    c.rows = static_cast<std::int64_t>(tokens_.size());
  });
}

void Numerics::check_operand(const LayerRef& ref, const ops::InverseRopeQuant& op) {
  constexpr std::size_t kRun = 128;  // channels under one scale
  const LayerState& layer = state_of(ref);
  const std::int64_t dim = op.o.last();
  check("output_operand", ref, [&](Comparison& c) {
    for (const std::int64_t t : tokens_) {
      const Vector out = row_of(op.o, t), codes = row_of(op.q, t), scales = row_of(op.scales, t);
      const Vector exact =
          reference::unrotate_heads(View(out).first(codes.size()), dim, rope(layer), position(t));
      const auto in = static_cast<std::size_t>(op.q.last());
      const auto runs = static_cast<std::size_t>(op.scales.last());
      const double slack = reference::kSlack * reference::largest(exact);
      Vector stored(codes.size()), right(codes.size());
      // Runs do not cross groups.
      const auto groups = static_cast<std::int64_t>(codes.size() / in);
      const auto compare = [&](std::int64_t begin, std::int64_t end) {
        for (std::size_t at = static_cast<std::size_t>(begin) * in;
             at < static_cast<std::size_t>(end) * in;) {
          const std::size_t count = std::min(kRun, in - at % in);
          const View run = View(codes).subspan(at, count), values = View(exact).subspan(at, count);
          const double scale = scales[at / in * runs + at % in / kRun];
          const bool power = scale > 0 && std::isfinite(scale);
          const Vector expected = reference::expected_e4m3(
              values, run, power ? std::ilogb(scale) : 0, 1e-10, slack, false);
          std::copy(expected.begin(), expected.end(),
                    right.begin() + static_cast<std::ptrdiff_t>(at));
          for (std::size_t i = 0; i < count; ++i) stored[at + i] = run[i] * scale;
          at += count;
        }
      };
      // A value costs some 50 comparisons with the grid.
      ops::host::share_rows(groups, 1, 50 * static_cast<std::int64_t>(codes.size()), compare);
      row(c, stored, right);
    }
    poison(c, op.q, op.rows());
    poison(c, op.scales, op.rows());
  });
}

}  // namespace warmgate::engine::checks
