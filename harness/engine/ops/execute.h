// The one way to use an op. An op is a plain struct of parameters P with
//   Reason can_run(const P&)   nothing, or why these parameters cannot run
//   Cost account(const P&)     bytes, FLOPs, launches
//   run(const P&, const Device&)
//   P::kernel                  its name in events
//   p.arguments(visitor)       its tensors and specialised integers, in the kernel's order
// On a device that only accounts, an op is can_run plus account.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/engine/context.h"
#include "harness/engine/ops/cost.h"
#include "harness/engine/ops/device.h"
#include "harness/engine/ops/graph_pass.h"
#include "harness/engine/ops/observer.h"
#include "harness/engine/ops/op_clock.h"
#include "harness/engine/ops/signature.h"

namespace warmgate::engine {

using Reason = std::optional<std::string>;

/// can_run said no: the engine asked for something the kernel cannot do.
class OpRefused : public std::runtime_error {
 public:
  OpRefused(const std::string& message, LayerRef layer_in, std::string kernel_in)
      : std::runtime_error(message), layer(layer_in), kernel(std::move(kernel_in)) {}
  LayerRef layer;
  std::string kernel;
};

namespace ops {
/// Chosen where no overload for P and an executing device exists.
template <class P>
void run(const P& p, const Device& device) {
  throw std::runtime_error("no " + std::string(p.kernel) + " for device " +
                           std::string(device.name()));
}
}  // namespace ops

class Executor {
 public:
  explicit Executor(Context& context)
      : context_(context), device_(device_named(context.config.device)) {}

  /// Throws OpRefused with the op's reason. `rows`: tokens (or requests) that the launch works on.
  template <class P>
  void operator()(const LayerRef& layer, const P& op, std::int64_t rows) {
    if (Reason reason = can_run(op)) [[unlikely]]
      refuse(layer, op.kernel, *reason);
    const Cost cost = account(op);
    cost_ += cost;
    if (pass_ != nullptr && pass_->inside()) [[unlikely]] {
      GraphOp asked;
      asked.kernel = op.kernel;
      asked.layer = layer;
      op.arguments(asked);
      // A captured op has not run, so that no launch of it is told.
      if (pass_->see(std::move(asked))) run(op, device_);
      return;
    }
    const bool first = tell(layer, op, rows);
    if (!device_.executes()) return;
    if (context_.clock == nullptr) {
      run(op, device_);
      settle(layer, op.kernel, first);
    } else {
      const std::int64_t begin = trace::now_ns();
      run(op, device_);
      device_.wait(op.kernel.data());
      context_.clock->add(op.kernel, trace::now_ns() - begin, cost);
    }
    if constexpr (Observed<P>) {
      if (context_.observer != nullptr) context_.observer->after(layer, op);
    }
  }

  /// A copy from the host: checked and accounted like an op, but no launch. `there`: the device has
  /// these contents already.
  template <class P>
  void copy(const LayerRef& layer, std::string_view what, const P& op, bool there = false) {
    if (Reason reason = can_run(op)) [[unlikely]]
      refuse(layer, what, *reason);
    Cost cost = account(op);
    cost.launches = 0;
    cost_ += cost;
    if (pass_ != nullptr && pass_->inside())
      throw std::logic_error(std::string(what) + ": a copy from the host inside a graph");
    drain();
    if (device_.executes() && !there) run(op, device_);
  }

  /// Waits for every op so far. Throws DeviceFault naming those of which one failed.
  void drain() {
    if (since_wait_.empty()) return;
    std::vector<std::string_view> ops;
    ops.swap(since_wait_);
    wait_for(ops);
  }

  /// From now on ops belong to this pass over a graph; null: they run.
  void use(GraphPass* pass) { pass_ = pass; }
  /// A graph is being captured or replayed, also where this part of it runs eagerly.
  bool in_graph() const { return pass_ != nullptr; }
  /// What runs eagerly between the pieces of a piecewise graph, as long as this lives.
  class EagerRegion {
   public:
    explicit EagerRegion(GraphPass* pass) : pass_(pass) {
      if (pass_ != nullptr) pass_->leave();
    }
    /// Not where the region ends by an exception: the pass is over then.
    void close() {
      if (pass_ != nullptr) pass_->enter();
    }

   private:
    GraphPass* pass_;
  };
  EagerRegion eager_region() { return EagerRegion(pass_); }

  /// True where tensors have contents, so that what ops read must be there.
  bool executes() const { return device_.executes(); }
  Context& context() { return context_; }
  /// Since the last take_cost().
  const Cost& cost() const { return cost_; }
  Cost take_cost() {
    const Cost out = cost_;
    cost_ = {};
    return out;
  }

 private:
  /// A launch that is new in its phase is waited for, so that a fault has its kernel's name. Those
  /// that went well before are waited for together, a layer at a time.
  void settle(const LayerRef& layer, std::string_view kernel, bool first) {
    since_wait_.push_back(kernel);
    if (first || layer.id != waited_layer_) drain();
    waited_layer_ = layer.id;
  }
  void wait_for(const std::vector<std::string_view>& ops) const;

  template <class P>
  bool tell(const LayerRef& layer, const P& op, std::int64_t rows) {
    SignatureKey key;
    op.arguments(key);
    return context_.recorder.launch(op.kernel, {}, signatures_.text(key), layer, rows);
  }
  [[noreturn]] static void refuse(const LayerRef& layer, std::string_view kernel,
                                  const std::string& reason) {
    throw OpRefused(std::string(kernel) + " cannot run: " + reason, layer, std::string(kernel));
  }
  Context& context_;
  const Device& device_;
  SignatureCache signatures_;
  Cost cost_;
  GraphPass* pass_ = nullptr;
  std::vector<std::string_view> since_wait_;  // kernels of ops that nobody has waited for
  int waited_layer_ = -2;
};

/// execute(executor, layer, op): the free form that reads well where rows follow from the op.
template <class P>
void execute(Executor& executor, const LayerRef& layer, const P& op) {
  executor(layer, op, op.rows());
}

}  // namespace warmgate::engine
