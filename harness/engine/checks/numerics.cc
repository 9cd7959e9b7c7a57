#include "harness/engine/checks/numerics.h"

#include <algorithm>
#include <set>

#include "harness/engine/checks/read.h"
#include "kernels/reference/compare.h"

namespace warmgate::engine::checks {

namespace {

reference::Rope rope_of(const scenario::Model& m, std::int64_t ratio, const std::string& choice) {
  reference::Rope out = reference::rope_of_layer(
      ratio, choice == "plain" ? reference::WindowRope::plain : reference::WindowRope::yarn);
  out.theta = ratio > 1 ? m.compress_rope_theta : m.rope_theta;
  out.factor = m.rope_factor;
  out.original_length = static_cast<double>(m.original_max_position_embeddings);
  out.beta_fast = m.beta_fast;
  out.beta_slow = m.beta_slow;
  out.dims = m.qk_rope_head_dim;
  return out;
}

}  // namespace

Numerics::Numerics(const scenario::Resolved& config, const Dims& dims,
                   const std::vector<LayerState>& layers, Recorder& recorder)
    : config_(config),
      dims_(dims),
      layers_(layers),
      extent_(config.checks.numerics == "all" ? Extent::kAll : Extent::kSampled),
      recorder_(recorder),
      tally_(recorder),
      // Of a deep model one step of each kind: it has layers enough to look at several of each.
      sampler_(extent_, layers.size() >= 2 * kLayersOfAStep ? 1 : Sampler::kStepsOfAKind),
      window_rope_(rope_of(config.model, 1, config.checks.rope_reference)),
      compressed_rope_(rope_of(config.model, 4, config.checks.rope_reference)),
      eps_(config.model.rms_norm_eps) {}

void Numerics::begin_step(const StepHost& step, const BlockTables& tables) {
  step_number_ = steps_++;
  tokens_ = sampler_.rows(step, recorder_.phase(), dims_);
  if (tokens_.empty()) return;
  // The tokens of a dummy step may see the null block, so that nothing is known of what they give
  // where somebody spoiled that, as warmup does to prove that nothing is left of it.
  if (step.dummy && !null_block_is_zero()) return;
  step_ = &step;
  ++compared_;
  tables_ = &tables;
  before_.clear();
  pick_logit_rows();
  if (!tables_checked_) {
    tables_checked_ = true;
    check_rope_tables();
  }
}

bool Numerics::null_block_is_zero() const {
  const Tensor& view = layers_.front().swa.view;
  PageReader pages(view);
  const reference::Bytes page =
      pages.page(0).first(static_cast<std::size_t>(view.dim(1) * view.dim(2)));
  return std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; });
}

void Numerics::end_step() { step_ = nullptr; }

// A request that decodes gives logits at each of its tokens, one that prefills at its last.
void Numerics::pick_logit_rows() {
  logit_tokens_.clear();
  for (std::size_t r = 0; r < step_->batch.size(); ++r) {
    const BatchRequest& request = step_->batch[r];
    if (request.request == kPadding) break;
    const std::int64_t end = step_->query_start[r + 1];
    const bool each = request.computed > 0 && request.query <= 1 + dims_.speculative;
    for (std::int64_t t = each ? end - request.query : end - 1; t < end; ++t) {
      logit_tokens_.push_back(t);
    }
  }
  const auto rows = static_cast<std::int64_t>(logit_tokens_.size());
  picked_ = spread(rows, most(2), static_cast<std::uint64_t>(step_number_));
}

std::int64_t Numerics::most(std::int64_t sampled) const {
  return extent_ == Extent::kAll ? std::int64_t{1} << 40 : sampled;
}

Numerics::Request Numerics::request(std::int64_t token) const {
  const auto r = static_cast<std::size_t>(step_->token_to_req[static_cast<std::size_t>(token)]);
  return {step_->batch[r].request, step_->batch[r].computed};
}

std::int64_t Numerics::token_id(std::int64_t token) const {
  const auto r = static_cast<std::size_t>(step_->token_to_req[static_cast<std::size_t>(token)]);
  const auto& ids = step_->batch[r].ids;
  if (step_->dummy || ids.empty()) return 0;
  return ids[static_cast<std::size_t>(token - step_->query_start[r])];
}

void Numerics::check(std::string_view tensor, const LayerRef& layer,
                     const std::function<void(Comparison&)>& compare) {
  Comparison c;
  c.tensor = tensor;
  c.layer = layer;
  try {
    compare(c);
  } catch (const std::exception& error) {
    c.exact = true;
    ++c.mismatches;
    if (c.message.empty()) c.message = error.what();
  }
  if (c.rows > 0 || failed(c)) tally_.add(c, step_number_);
  recorder_.heartbeat();  // where all rows are compared, a step takes its time
}

void Numerics::row(Comparison& c, reference::View out, reference::View ref) const {
  ++c.rows;
  c.error = std::max(c.error, reference::row_error(out, ref));
}

void Numerics::exact_row(Comparison& c, reference::View out, reference::View ref) const {
  ++c.rows;
  c.exact = true;
  if (out.size() != ref.size()) {
    c.mismatches += static_cast<std::int64_t>(std::max(out.size(), ref.size()));
    return;
  }
  // NaN equals nothing, itself neither.
  for (std::size_t i = 0; i < out.size(); ++i) c.mismatches += out[i] == ref[i] ? 0 : 1;
}

void Numerics::poison(Comparison& c, const Tensor& out, std::int64_t rows) const {
  c.poisoned += poisoned(out, rows, most(1 << 18));
}

void Numerics::check_rope_tables() {
  std::set<std::uint64_t> seen;
  for (const LayerState& layer : layers_) {
    if (layer.role == Role::kDraft || !layer.cos_sin.present()) continue;
    if (!seen.insert(layer.cos_sin.address).second) continue;
    check("rope_table", layer.ref, [&](Comparison& c) {
      const std::int64_t last = std::min(dims_.max_model_len, layer.cos_sin.rows()) - 1;
      for (const std::int64_t p : {std::int64_t{0}, std::int64_t{1}, last / 2, last}) {
        row(c, row_of(layer.cos_sin, p), reference::cos_sin(rope(layer), p));
      }
    });
  }
}

}  // namespace warmgate::engine::checks
