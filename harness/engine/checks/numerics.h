// Compares what the engine computes, step by step, with the float64 oracles of kernels/reference.
// Every oracle is fed with what is stored (cache rows, state rows) and with that step's own inputs
// of the op; which keys a token sees and where rows lie follows from request positions and the host
// block tables alone. So wrong metadata, an entry that was not made, a tail that nobody wrote and a
// wrong slot all show as an error here. Draft layers, profiling and what no step runs are not
// compared.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "harness/engine/checks/sample.h"
#include "harness/engine/checks/tally.h"
#include "harness/engine/layers/layer_state.h"
#include "harness/engine/memory/block_tables.h"
#include "harness/engine/ops/observer.h"
#include "harness/scenario/resolved.h"
#include "kernels/reference/matrix.h"
#include "kernels/reference/rope.h"

namespace warmgate::engine::checks {

class Numerics final : public Observer {
 public:
  /// `layers`: the target's first, at its id; they outlive this. Nothing is compared until
  /// begin_step.
  Numerics(const scenario::Resolved& config, const Dims& dims,
           const std::vector<LayerState>& layers, Recorder& recorder);

  /// From now on ops belong to this step of the target; `tables` outlive it.
  void begin_step(const StepHost& step, const BlockTables& tables);
  void end_step();
  /// Sends the phase's `check` events.
  void end_phase() { tally_.end_phase(); }

  void after(const LayerRef&, const ops::CompressWindow&) override {}
  void after(const LayerRef&, const ops::SavePartialStates&) override {}
  void after(const LayerRef& layer, const ops::Embed& op) override;
  void after(const LayerRef& layer, const ops::FusedQkvNorm& op) override;
  void after(const LayerRef& layer, const ops::Gemm& op) override;
  void after(const LayerRef& layer, const ops::GroupedProjection& op) override;
  void after(const LayerRef& layer, const ops::HyperConnectionPost& op) override;
  void after(const LayerRef& layer, const ops::HyperConnectionPre& op) override;
  void after(const LayerRef& layer, const ops::IndexerQuant& op) override;
  void after(const LayerRef& layer, const ops::InverseRopeQuant& op) override;
  void after(const LayerRef& layer, const ops::Moe& op) override;
  void after(const LayerRef& layer, const ops::QNormRopeInsert& op) override;
  void after(const LayerRef& layer, const ops::RmsNorm& op) override;
  void after(const LayerRef& layer, const ops::Sample& op) override;
  void after(const LayerRef& layer, const ops::SelectRows& op) override;

 private:
  static constexpr std::size_t kLayersOfAStep = 5;

  using Vector = reference::Vector;
  using Matrix = reference::Matrix;
  using Rows = std::vector<std::int64_t>;

  struct Request {
    std::int64_t row = 0;    // of the block tables
    std::int64_t first = 0;  // position of its first token of this step
  };

  /// Of a deep model each compared step looks at some of its layers, the next at others: their
  /// kernels are the same, and a float64 copy of every one would take minutes.
  bool watching(const LayerRef& layer) const {
    if (step_ == nullptr || layer.role == "draft") return false;
    const auto deep = static_cast<std::int64_t>(layers_.size() / kLayersOfAStep);
    return extent_ == Extent::kAll || layer.id < 0 || deep < 2 ||
           (layer.id + compared_) % deep == 0;
  }
  /// Runs `compare`; what it throws (a freed block, a row that is not there) is a mismatch.
  void check(std::string_view tensor, const LayerRef& layer,
             const std::function<void(Comparison&)>& compare);
  void row(Comparison& c, reference::View out, reference::View ref) const;
  /// Elements that differ at all.
  void exact_row(Comparison& c, reference::View out, reference::View ref) const;
  void poison(Comparison& c, const Tensor& out, std::int64_t rows) const;
  /// Selected outputs of y = x · wᵀ at these rows.
  void product(Comparison& c, const Tensor& x, const Tensor& w, const Tensor& whole,
               const Tensor& y, const Rows& rows);

  const LayerState& state_of(const LayerRef& layer) const {
    return layers_.at(static_cast<std::size_t>(layer.id));
  }
  /// Tokens of a dummy step are all given position 0 and id 0.
  std::int64_t position(std::int64_t token) const {
    return step_->dummy ? 0 : step_->positions[static_cast<std::size_t>(token)];
  }
  std::int64_t token_id(std::int64_t token) const;
  Request request(std::int64_t token) const;
  std::span<const std::int32_t> table(std::size_t group, std::int64_t token) const {
    return tables_->row(group, request(token).row);
  }
  const reference::Rope& rope(const LayerState& layer) const {
    return layer.ratio > 1 ? compressed_rope_ : window_rope_;
  }
  std::uint64_t salt(const LayerRef& layer) const {
    return static_cast<std::uint64_t>(step_number_ * 131 + layer.id);
  }
  std::int64_t most(std::int64_t sampled) const;

  // Parts of after(InverseRopeQuant), the end of a layer's attention.
  void check_window_key(const LayerRef& ref);
  void check_state(const LayerRef& ref, std::string_view tensor, const BoundCache& state,
                   const Tensor& ape, const Matrix& scores);
  void check_entries(const LayerRef& ref);
  void check_index_keys(const LayerRef& ref);
  void check_topk(const LayerRef& ref);
  void check_attention(const LayerRef& ref, const ops::InverseRopeQuant& op);
  void check_operand(const LayerRef& ref, const ops::InverseRopeQuant& op);
  /// Entries of this layer's ratio that selected tokens of this step end or see as their newest, if
  /// this step made them: (token that ends it, entry).
  std::vector<std::pair<std::int64_t, std::int64_t>> made_entries(std::int64_t ratio) const;
  Vector entry_of_states(const LayerState& layer, const BoundCache& state, std::int64_t dim,
                         WeightId norm, std::int64_t token, std::int64_t entry) const;
  Matrix attended_keys(const LayerState& layer, std::int64_t token) const;
  Matrix index_keys(const LayerState& layer, std::int64_t token, std::int64_t count) const;
  bool null_block_is_zero() const;
  void check_rope_tables();
  void pick_logit_rows();

  const scenario::Resolved& config_;
  const Dims& dims_;
  const std::vector<LayerState>& layers_;
  Extent extent_;
  Recorder& recorder_;
  Tally tally_;
  Sampler sampler_;
  reference::Rope window_rope_, compressed_rope_;
  double eps_;
  bool tables_checked_ = false;

  // Of the step.
  const StepHost* step_ = nullptr;
  const BlockTables* tables_ = nullptr;
  std::int64_t steps_ = 0, step_number_ = 0, compared_ = 0;
  Rows tokens_;                             // rows of [T,…] tensors
  Rows picked_;                             // rows of [n,…] tensors behind the selection
  std::vector<std::int64_t> logit_tokens_;  // token of each of the n rows
  std::string large_mlp_phase_;             // in which a large gated_mlp was compared last

  // Of the layer under way, at the rows of tokens_ (picked_ around the layers).
  std::unordered_map<std::uint64_t, Matrix> before_;  // by address: values before they are changed
  Matrix kv_, query_, main_score_, index_score_, index_query_, index_weights_;
};

/// One step of the target under watch; a null watcher watches nothing.
class Watch {
 public:
  Watch(Numerics* numerics, const StepHost& step, const BlockTables& tables) : numerics_(numerics) {
    if (numerics_ != nullptr) numerics_->begin_step(step, tables);
  }
  ~Watch() {
    if (numerics_ != nullptr) numerics_->end_step();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Numerics* numerics_;
};

}  // namespace warmgate::engine::checks
