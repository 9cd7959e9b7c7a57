// Where the model is watched: checks of what its ops compute, on devices that execute.
#include "harness/engine/model_impl.h"
#include "kernels/cuda/runtime.h"

namespace warmgate::engine {

void EngineModel::Impl::watch_numerics() {
  if (!exec.executes() || context.config.checks.numerics == "off") return;
  numerics = std::make_unique<checks::Numerics>(context.config, dims, layers, context.recorder);
  if (context.observer == nullptr) context.observer = numerics.get();
}

EngineModel::Impl::~Impl() {
  if (context.observer == numerics.get()) context.observer = nullptr;
  for (const auto& [size, graph] : graphs) {
    for (const std::uint64_t piece : graph.graph.pieces)
      device_named(context.config.device).gpu()->destroy(piece);
  }
}

void EngineModel::end_phase() {
  if (impl_->numerics) impl_->numerics->end_phase();
  impl_->end_graphs();
}

}  // namespace warmgate::engine
