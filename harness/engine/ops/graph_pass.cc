#include "harness/engine/ops/graph_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/runtime.h"

namespace warmgate::engine {

void GraphOp::operator()(const Tensor& t) {
  add(static_cast<std::int64_t>(t.address), true);
  add(t.rank, false);
  for (int i = 0; i < t.rank; ++i) {
    add(t.dim(i), false);
    add(t.strides[static_cast<std::size_t>(i)], false);
  }
}

GraphPass::~GraphPass() {
  if (replays() && inside_) device_.gpu()->mute(false);
  if (capturing_) device_.gpu()->abandon_capture();
}

void GraphPass::open_piece() {
  inside_ = true;
  if (replays()) {
    // The host only walks through its allocations here. Their poison belongs to the graph: written
    // now, it would spoil what the graph has yet to read.
    device_.gpu()->mute(true);
    return;
  }
  device_.gpu()->begin_capture();
  capturing_ = true;
}

void GraphPass::close_piece() {
  inside_ = false;
  if (!replays()) {
    capturing_ = false;  // whatever comes of it: it is over
    graph_.pieces.push_back(device_.gpu()->end_capture());
    return;
  }
  device_.gpu()->mute(false);
  if (next_piece_ < graph_.pieces.size()) {
    device_.gpu()->replay(graph_.pieces[next_piece_]);
  } else {
    differ({"branch", "the end of the graph", "one more piece", {}, next_op_});
  }
  ++next_piece_;
  device_.wait(graph_.name.c_str());
}

void GraphPass::begin() {
  on_ = true;
  open_piece();
}

void GraphPass::end() {
  on_ = false;
  close_piece();
  if (replays() && next_op_ < graph_.ops.size() && said_ != next_op_) {
    const GraphOp& left = graph_.ops[next_op_];
    differ({"branch", left.kernel, "nothing more", left.layer, next_op_});
  }
}

void GraphPass::leave() {
  if (on_ && graph_.piecewise) close_piece();
}
void GraphPass::enter() {
  if (on_ && graph_.piecewise) open_piece();
}

void GraphPass::differ(GraphDifference difference) {
  if (differences_.size() < kMostDifferences) differences_.push_back(std::move(difference));
}

bool GraphPass::see(GraphOp op) {
  if (!replays()) {
    graph_.ops.push_back(std::move(op));
    return true;
  }
  const std::size_t at = next_op_++;
  if (at >= graph_.ops.size()) {
    differ({"branch", "nothing more", op.kernel, op.layer, at});
    return false;
  }
  const GraphOp& captured = graph_.ops[at];
  if (captured.kernel != op.kernel || captured.layer.id != op.layer.id) {
    // One op more or less must not make all that follows different.
    for (std::size_t skip = 1; skip <= 4 && at + skip < graph_.ops.size(); ++skip) {
      const GraphOp& later = graph_.ops[at + skip];
      if (later.kernel != op.kernel || later.layer.id != op.layer.id) continue;
      if (said_ != at) differ({"branch", captured.kernel, op.kernel, op.layer, at});
      next_op_ = at + skip + 1;
      return false;
    }
    differ({"branch", captured.kernel, op.kernel, op.layer, at});
    said_ = at;
    next_op_ = at;
    return false;
  }
  for (std::size_t i = 0; i < std::max(captured.words.size(), op.words.size()); ++i) {
    const bool both = i < captured.words.size() && i < op.words.size();
    if (both && captured.words[i] == op.words[i]) continue;
    const bool address = both && op.is_address[i];
    const auto text = [&](const GraphOp& of) {
      if (i >= of.words.size()) return of.kernel + ": no such argument";
      return address
                 ? fmt::format("{} at {:#x}", of.kernel, static_cast<std::uint64_t>(of.words[i]))
                 : fmt::format("{} with {}", of.kernel, of.words[i]);
    };
    differ({address ? "pointer" : "argument", text(captured), text(op), op.layer, at});
    break;
  }
  return false;
}

}  // namespace warmgate::engine
