// Everything but attention: embedding, residual copies, norms, matrix products, the gated MLP,
// selection, the greedy choice.
#include <cstring>

#include "harness/engine/checks/numerics.h"
#include "harness/engine/checks/read.h"
#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/output_projection.h"
#include "kernels/reference/layer.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/number.h"

namespace warmgate::engine::checks {

namespace {

constexpr std::int64_t kColumns = 32;  // of a product's outputs, where not all are compared

std::int64_t i64_at(const Tensor& t, std::int64_t i) {
  std::int64_t out;
  std::vector<std::byte> copy;
  std::memcpy(&out, look_at(t.address + static_cast<std::uint64_t>(8 * i), sizeof out, copy),
              sizeof out);
  return out;
}

// What a product is called in events: its kernel without what every one of them ends in.
std::string_view product_name(std::string_view kernel) {
  for (const std::string_view ending : {"_gemm_fp32", "_gemm"}) {
    if (kernel.ends_with(ending)) kernel.remove_suffix(ending.size());
  }
  if (kernel.starts_with("stand_in.")) kernel.remove_prefix(9);
  return kernel;
}

reference::Vector at(reference::View row, const std::vector<std::int64_t>& columns) {
  reference::Vector out;
  for (const std::int64_t c : columns) out.push_back(row[static_cast<std::size_t>(c)]);
  return out;
}

}  // namespace

void Numerics::after(const LayerRef& layer, const ops::Embed& op) {
  if (!watching(layer)) return;
  check("embedding", layer, [&](Comparison& c) {
    for (const std::int64_t t : tokens_) {
      const std::int64_t local = token_id(t) - op.first_id;
      const Vector out = row_of(op.out, t);
      const bool here = local >= 0 && local < op.table.rows();
      exact_row(c, out, here ? row_of(op.table, local) : Vector(out.size(), 0.0));
    }
    poison(c, op.out, op.rows());
  });
}

// Stand-in: x is copy 0, all copies are equal.
void Numerics::after(const LayerRef& layer, const ops::HyperConnectionPre& op) {
  if (!watching(layer)) return;
  const auto width = static_cast<std::size_t>(op.x.last());
  const Matrix copies = rows_of(op.residual, tokens_), x = rows_of(op.x, tokens_);
  Matrix first(copies.rows, op.x.last());
  check("layer_input", layer, [&](Comparison& c) {
    for (std::int64_t i = 0; i < copies.rows; ++i) {
      const reference::View all = copies.row(i), one = all.subspan(0, width);
      for (std::size_t k = 0; k < all.size(); k += width) exact_row(c, all.subspan(k, width), one);
      exact_row(c, x.row(i), one);
      first.set_row(i, one);
    }
    poison(c, op.x, op.rows());
  });
  before_[op.residual.address] = std::move(first);
  before_[op.x.address] = x;
}

void Numerics::after(const LayerRef& layer, const ops::HyperConnectionPost& op) {
  if (!watching(layer)) return;
  const Matrix y = rows_of(op.y, tokens_);
  // What this rank alone computed is the sum where there is no other.
  const auto own = before_.find(op.y.address);
  if (dims_.tp == 1 && own != before_.end()) {
    check("rank_sum", layer, [&](Comparison& c) {
      for (std::int64_t i = 0; i < y.rows; ++i) exact_row(c, y.row(i), own->second.row(i));
    });
  }
  const auto old = before_.find(op.residual.address);
  if (old == before_.end()) return;
  check("residual", layer, [&](Comparison& c) {
    const auto width = static_cast<std::size_t>(op.y.last());
    for (std::int64_t i = 0; i < y.rows; ++i) {
      const Vector now = row_of(op.residual, tokens_[static_cast<std::size_t>(i)]);
      const Vector sum = reference::add(old->second.row(i), y.row(i));
      for (std::size_t k = 0; k < now.size(); k += width) {
        row(c, reference::View(now).subspan(k, width), sum);
      }
    }
    poison(c, op.residual, op.rows());
  });
}

void Numerics::after(const LayerRef& layer, const ops::RmsNorm& op) {
  if (!watching(layer)) return;
  const Rows& rows = layer.id < 0 ? picked_ : tokens_;
  Matrix in;
  if (op.x.address != op.y.address) {
    in = rows_of(op.x, rows);
  } else if (const auto old = before_.find(op.x.address); old != before_.end()) {
    in = old->second;
  } else {
    return;  // normalised in place, and nobody saw what was there
  }
  std::string_view name = "final_norm";
  if (layer.id >= 0) {
    const bool attention = op.weight.address == state_of(layer).w(WeightId::kAttnNorm).address;
    name = attention ? "attn_norm" : "ffn_norm";
  }
  check(name, layer, [&](Comparison& c) {
    const Vector weight = all_of(op.weight);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      row(c, row_of(op.y, rows[i]),
          reference::rms_norm(in.row(static_cast<std::int64_t>(i)), weight, eps_));
    }
    poison(c, op.y, op.rows());
  });
}

void Numerics::product(Comparison& c, const Tensor& x, const Tensor& w, const Tensor& whole,
                       const Tensor& y, const Rows& rows) {
  const Rows columns = spread(w.rows(), most(kColumns), salt(c.layer));
  const Matrix weights = weight_rows(w, columns, whole);
  for (const std::int64_t r : rows) {
    row(c, at(row_of(y, r), columns), reference::project(row_of(x, r), weights));
  }
  poison(c, y, x.rows());
}

void Numerics::after(const LayerRef& layer, const ops::Gemm& op) {
  if (!watching(layer)) return;
  const Rows& rows = layer.id < 0 ? picked_ : tokens_;
  check(product_name(op.kernel), layer,
        [&](Comparison& c) { product(c, op.x, op.w, op.whole, op.y, rows); });
  if (layer.id < 0) return;
  const LayerState& state = state_of(layer);
  if (op.w.address == state.w(WeightId::kWoB).address) {
    before_[op.y.address] = rows_of(op.y, rows);
  } else if (op.w.address == state.w(WeightId::kCompressorWkvWgate).address) {
    main_score_ = rows_of(op.y, rows);
  } else if (op.w.address == state.w(WeightId::kIndexerCompressorWkvWgate).address) {
    index_score_ = rows_of(op.y, rows);
  }
}

void Numerics::after(const LayerRef& layer, const ops::GroupedProjection& op) {
  if (!watching(layer)) return;
  check("grouped_projection", layer, [&](Comparison& c) {
    const std::int64_t groups = op.x.dim(1), in = op.x.last(), lora = op.z.last();
    const Rows outputs = spread(groups * lora, most(kColumns), salt(layer));
    const Matrix weights = weight_rows(op.w, outputs);
    for (const std::int64_t t : tokens_) {
      const Vector codes = row_of(op.x, t), scales = row_of(op.scales, t);
      Vector reference;
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        const std::int64_t group = outputs[k] / lora;
        Matrix one(1, in);
        one.set_row(0, weights.row(static_cast<std::int64_t>(k)));
        Vector x(static_cast<std::size_t>(in));
        for (std::int64_t i = 0; i < in; ++i) {
          x[static_cast<std::size_t>(i)] =
              codes[static_cast<std::size_t>(group * in + i)] *
              scales[static_cast<std::size_t>(group * op.scales.last() + i / 128)];
        }
        reference.push_back(reference::project(x, one).front());
      }
      row(c, at(row_of(op.z, t), outputs), reference);
    }
    poison(c, op.z, op.rows());
  });
}

// Stand-in: the shared expert's MLP, expert 0's where there is none.
void Numerics::after(const LayerRef& layer, const ops::Moe& op) {
  if (!watching(layer)) return;
  const Tensor& up = op.shared_w13.present() ? op.shared_w13 : op.w13;
  // Of a large one the whole matrix is 100 ms of doubles: once a phase, in a layer that changes.
  constexpr std::int64_t kLarge = 1 << 22;
  const bool taken = up.last() * up.dim(up.rank - 2) > kLarge && extent_ != Extent::kAll &&
                     (large_mlp_phase_ == recorder_.phase());
  if (taken) {
    before_[op.y.address] = rows_of(op.y, tokens_);
    return;
  }
  large_mlp_phase_ = recorder_.phase();
  check("gated_mlp", layer, [&](Comparison& c) {
    const Tensor& down = op.shared_w2.present() ? op.shared_w2 : op.w2;
    const Rows columns = spread(op.y.last(), most(kColumns), salt(layer));
    const Matrix downs = weight_rows(down, columns);
    // The one product that needs a whole matrix for a row: sampled, one row.
    const auto few = static_cast<std::int64_t>(tokens_.size());
    for (std::int64_t i = 0; i < few; ++i) {
      if (most(1) == 1 && i != step_number_ % few) continue;
      const std::int64_t t = tokens_[static_cast<std::size_t>(i)];
      // Every product between input and output is a tensor of its own, rounded to bf16.
      const Vector inner = reference::bf16(project_stored(row_of(op.x, t), up));
      const Vector hidden = reference::bf16(reference::silu_and_mul(inner));
      row(c, at(row_of(op.y, t), columns), reference::project(hidden, downs));
    }
    poison(c, op.y, op.rows());
  });
  before_[op.y.address] = rows_of(op.y, tokens_);
}

void Numerics::after(const LayerRef& layer, const ops::SelectRows& op) {
  if (!watching(layer)) return;
  check("logit_rows", layer, [&](Comparison& c) {
    if (op.out.rows() != static_cast<std::int64_t>(logit_tokens_.size())) {
      c.exact = true;
      ++c.mismatches;
      c.message = std::to_string(op.out.rows()) + " rows of logits, " +
                  std::to_string(logit_tokens_.size()) + " tokens want some";
      picked_.clear();
      return;
    }
    for (const std::int64_t i : picked_) {
      exact_row(c, row_of(op.out, i),
                row_of(op.hidden, logit_tokens_[static_cast<std::size_t>(i)]));
    }
  });
  before_[op.out.address] = rows_of(op.out, picked_);
}

void Numerics::after(const LayerRef& layer, const ops::Sample& op) {
  if (!watching(layer)) return;
  check("argmax", layer, [&](Comparison& c) {
    c.exact = true;
    for (const std::int64_t i : picked_) {
      ++c.rows;
      c.mismatches += i64_at(op.ids, i) != reference::argmax(row_of(op.logits, i));
    }
    poison(c, op.logits, op.rows());
  });
}

}  // namespace warmgate::engine::checks
