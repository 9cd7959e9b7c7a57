// A forward pass recorded into a graph, or run by replaying one. While a pass is on, the executor
// does not run ops: they are captured, or compared with what was captured and left to the graph. So
// a replay knows what its step would have asked for: another kernel is a branch of the host that
// the graph has frozen, another address a pointer that has gone stale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/tensor.h"
#include "harness/engine/recorder.h"

namespace warmgate::engine {

/// An op as it was asked for: every address, shape, stride and integer of its arguments, in order.
struct GraphOp {
  std::string kernel;
  LayerRef layer;
  std::vector<std::int64_t> words;
  std::vector<bool> is_address;  // of words
  void operator()(const Tensor& t);
  void operator()(std::int64_t value) { add(value, false); }

 private:
  void add(std::int64_t value, bool address) {
    words.push_back(value);
    is_address.push_back(address);
  }
};

/// What a capture left: the pieces between which the host runs eagerly, and all their ops.
struct CapturedGraph {
  std::string name;  // "full/8": mode and size
  std::int64_t size = 0;
  bool piecewise = false;
  std::vector<std::uint64_t> pieces;  // of the device
  std::vector<GraphOp> ops;
};

/// Where a replay's step would have gone another way. `kind`: branch (another kernel, or one more
/// or less) or pointer (an address) or argument (a shape or an integer).
struct GraphDifference {
  std::string kind, captured, asked;
  LayerRef layer;
  std::size_t op = 0;
};

class GraphPass {
 public:
  enum class Kind : std::uint8_t { kCapture, kReplay };
  static constexpr std::size_t kMostDifferences = 16;

  /// `graph` outlives the pass; a capture fills it.
  GraphPass(Kind kind, CapturedGraph& graph, const Device& device)
      : kind_(kind), graph_(graph), device_(device) {}
  /// An unfinished capture is given up.
  ~GraphPass();
  GraphPass(const GraphPass&) = delete;
  GraphPass& operator=(const GraphPass&) = delete;

  /// From here to end() ops belong to the graph, but for those of eager regions.
  void begin();
  void end();
  /// Around what runs eagerly where the graph is piecewise; nothing otherwise.
  void leave();
  void enter();

  bool inside() const { return inside_; }
  bool replays() const { return kind_ == Kind::kReplay; }
  /// An op inside. True: run it, into the capture.
  bool see(GraphOp op);

  const std::vector<GraphDifference>& differences() const { return differences_; }

 private:
  void open_piece();
  void close_piece();
  void differ(GraphDifference difference);

  Kind kind_;
  CapturedGraph& graph_;
  const Device& device_;
  bool on_ = false, inside_ = false, capturing_ = false;
  std::size_t next_op_ = 0, next_piece_ = 0;
  std::size_t said_ = static_cast<std::size_t>(-1);  // captured op that a difference was said of
  std::vector<GraphDifference> differences_;
};

}  // namespace warmgate::engine
