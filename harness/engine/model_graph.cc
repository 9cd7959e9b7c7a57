// Decode steps as graphs: capture, replay, and whether a replay gives what its step would have
// given.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "harness/engine/model_impl.h"

namespace warmgate::engine {

namespace {

// The first replays of a graph are compared with an eager run, then one in so many.
constexpr std::int64_t kFirstCompared = 2, kEveryCompared = 64;

/// Scratch memory is not poisoned as long as this lives.
class Unpoisoned {
 public:
  explicit Unpoisoned(DeviceMemory& memory) : memory_(memory) { memory_.poison_scratch(false); }
  ~Unpoisoned() { memory_.poison_scratch(true); }
  Unpoisoned(const Unpoisoned&) = delete;
  Unpoisoned& operator=(const Unpoisoned&) = delete;

 private:
  DeviceMemory& memory_;
};

struct RowError {
  double worst = 0;
  bool equal = true;
};

float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rows of `width` bf16 values against each other: the largest ‖a-b‖/‖b‖.
RowError compare(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                 std::size_t width) {
  RowError out;
  for (std::size_t begin = 0; begin + width <= a.size(); begin += width) {
    double difference = 0, norm = 0;
    for (std::size_t i = begin; i < begin + width; ++i) {
      out.equal &= a[i] == b[i];
      const double right = bf16_value(b[i]), d = bf16_value(a[i]) - right;
      difference += d * d, norm += right * right;
    }
    if (difference == 0) continue;
    const double error = std::sqrt(difference / norm);
    // NaN is the worst there is.
    out.worst =
        error > out.worst || std::isnan(error) ? (std::isnan(error) ? 1e9 : error) : out.worst;
  }
  return out;
}

}  // namespace

bool EngineModel::has_graphs() const {
  return device_named(impl_->context.config.device).gpu() != nullptr &&
         impl_->context.collectives.world() == 1;
}

Replayed* EngineModel::Impl::graph_of(const Batch& batch) {
  if (batch.dummy || graphs.empty()) return nullptr;
  for (const BatchRequest& r : batch.requests) {
    if (r.query != 1 || r.computed == 0) return nullptr;
  }
  const auto it = graphs.lower_bound(batch.tokens());
  return it == graphs.end() ? nullptr : &it->second;
}

void EngineModel::Impl::shape_for(const Replayed& graph, Batch& batch) const {
  batch.pad_to = graph.graph.size;
  batch.shape_length = dims.max_model_len;
  if (!graph.graph.piecewise) batch.branch_length = dims.max_model_len;
}

void EngineModel::capture_graph(std::int64_t size, bool piecewise) {
  Impl& m = *impl_;
  m.require_cache("capture");
  Batch batch;
  batch.dummy = true;
  for (std::int64_t r = 0; r < size; ++r) batch.requests.push_back({r, 0, 1});
  Replayed& made = m.graphs[size];
  made = {};
  made.graph.name = std::string(piecewise ? "piecewise/" : "full/") + std::to_string(size);
  made.graph.size = size;
  made.graph.piecewise = piecewise;
  m.shape_for(made, batch);
  const Device& device = device_named(m.context.config.device);
  const auto before = device.free_bytes();
  const Unpoisoned unpoisoned(m.context.memory);
  // First eagerly, so that whatever this size needs is loaded before the capture; layers of one
  // kind need the same.
  for (const bool captures : {false, true}) {
    m.one_layer_of_a_kind = !captures;
    Activations metadata(m.context.memory, m.step_metadata);
    const StepMetadata& step = m.prepare(batch, metadata);
    Activations act(m.context.memory, m.model_activations);
    GraphPass pass(GraphPass::Kind::kCapture, made.graph, device);
    m.target_forward(&step, m.host.tokens, m.logit_rows(m.host), act, captures ? &pass : nullptr);
  }
  trace::Line line("capture");
  line.str("graph", made.graph.name).num("size", size);
  line.str("mode", piecewise ? "piecewise" : "full").num("ops", made.graph.ops.size());
  line.num("pieces", made.graph.pieces.size());
  if (before && device.free_bytes()) line.num("bytes", *before - *device.free_bytes());
  m.context.recorder.send(line);
}

void EngineModel::Impl::replay(const StepMetadata& step, Replayed& graph) {
  const Device& device = device_named(context.config.device);
  const std::int64_t rows = logit_rows(host);
  const bool compares = graph.replays < kFirstCompared || graph.replays % kEveryCompared == 0;
  std::vector<std::uint16_t> eager;
  const auto kept = static_cast<std::size_t>(host.real_tokens * dims.hc * dims.hidden);
  const auto read = [&](std::vector<std::uint16_t>& into) {
    into.resize(kept);
    device.read(last_residual.address, std::as_writable_bytes(std::span(into)));
  };
  if (compares) {
    const checks::Watch watch(numerics.get(), host, cache->tables());
    Activations act(context.memory, model_activations);
    target_forward(&step, host.tokens, rows, act);
    read(eager);
  }
  step.tiles_planned =
      {};  // a replay's step plans for itself, whether or not it ran eagerly before
  Activations act(context.memory, model_activations);
  GraphPass pass(GraphPass::Kind::kReplay, graph.graph, device);
  target_forward(&step, host.tokens, rows, act, &pass);
  ++graph.replays;
  for (const GraphDifference& d : pass.differences()) tell(graph, d);
  if (compares) {
    std::vector<std::uint16_t> replayed;
    read(replayed);
    const RowError error = compare(replayed, eager, static_cast<std::size_t>(dims.hidden));
    ++graph.compared;
    graph.unequal += error.equal ? 0 : 1;
    graph.error = std::max(graph.error, error.worst);
  }
  if (graph.replays == 1) tell(graph, false);
}

void EngineModel::Impl::tell(const Replayed& graph, bool final) {
  trace::Line line("replay");
  line.str("graph", graph.graph.name).num("size", graph.graph.size);
  line.num("count", graph.replays).num("compared", graph.compared);
  line.num("unequal", graph.unequal).real("error", graph.error);
  line.flag("final", final).str("phase", context.recorder.phase());
  context.recorder.send(line);
}

void EngineModel::Impl::tell(Replayed& graph, const GraphDifference& d) {
  // Every replay of a graph differs in the same way: once is enough, and a few.
  if (graph.differences >= GraphPass::kMostDifferences) return;
  ++graph.differences;
  trace::Line line("replay");
  line.str("graph", graph.graph.name).str("differs", d.kind).str("captured", d.captured);
  line.str("asked", d.asked).num("op", d.op).num("layer", d.layer.id);
  line.str("layer_kind", d.layer.kind).str("role", d.layer.role);
  line.str("phase", context.recorder.phase());
  context.recorder.send(line);
}

void EngineModel::Impl::end_graphs() {
  for (auto& [size, graph] : graphs) {
    if (graph.replays > 0) tell(graph, true);
  }
}

}  // namespace warmgate::engine
