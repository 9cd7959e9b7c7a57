// The scratch buffer that attention, indexer and top-k share: one byte buffer a lane. A request
// lays its views out from offset 0, so a later request may overlap an earlier one's data; growing
// drops the buffer, so addresses change and contents are lost.
// Origin: vLLM at d40c3e3c00, vllm/v1/worker/workspace.py WorkspaceManager.
#pragma once

#include <array>
#include <cstdint>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "harness/engine/memory/device_memory.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

/// A locked workspace was asked for more than it holds. Carries what the `fault` event needs.
class WorkspaceLocked : public std::runtime_error {
 public:
  WorkspaceLocked(const std::string& message, LayerRef layer_in, std::string function_in,
                  std::string file_in, int line_in)
      : std::runtime_error(message),
        layer(layer_in),
        function(std::move(function_in)),
        file(std::move(file_in)),
        line(line_in) {}
  LayerRef layer;
  std::string function, file;
  int line;
};

/// dtype and shape of one view.
struct ViewSpec {
  DType dtype = DType::kU8;
  std::array<std::int64_t, 3> shape{};
  int rank = 0;
  ViewSpec() = default;
  ViewSpec(DType dtype_in, Shape dims);
  std::int64_t bytes() const;
};

class Workspace {
 public:
  static constexpr std::int64_t kViewRounding = 256;
  static constexpr std::size_t kMaxViews = 4;
  struct Views {
    std::array<Tensor, kMaxViews> view;
    std::size_t count = 0;
    const Tensor& operator[](std::size_t i) const { return view[i]; }
  };

  /// lanes: 1, or 2 where two streams of work are alive at once (dual-batch overlap; target and
  /// draft since vllm-project/vllm#51538).
  Workspace(DeviceMemory& memory, Recorder& recorder, int lanes = 1);

  /// consumer: attention | indexer | topk. Grows the lane if it is too small; throws
  /// WorkspaceLocked instead if it is locked, OutOfMemory if the device is full.
  Views request(int lane, std::string_view consumer, const LayerRef& layer,
                std::initializer_list<ViewSpec> specs,
                const std::source_location& caller = std::source_location::current());

  void lock() { locked_ = true; }
  void unlock() { locked_ = false; }
  bool locked() const { return locked_; }
  int lanes() const { return static_cast<int>(lanes_.size()); }
  std::int64_t capacity(int lane) const { return at(lane).bytes; }
  std::uint64_t base(int lane) const { return at(lane).address; }
  /// Over all lanes.
  std::int64_t total_bytes() const;
  /// What a request of these views takes: each rounded up to 256 bytes.
  static std::int64_t bytes_of(std::span<const ViewSpec> specs);

 private:
  const Allocation& at(int lane) const;
  void grow(int lane, std::int64_t bytes, const LayerRef& layer,
            const std::source_location& caller);
  void tell(int lane, std::string_view consumer, const LayerRef& layer, std::int64_t requested,
            bool grew);
  DeviceMemory& memory_;
  Recorder& recorder_;
  DeviceMemory::Site site_;
  std::vector<Allocation> lanes_;
  bool locked_ = false;
  std::string phase_;
  std::unordered_set<std::uint64_t> told_;  // (kind, role, consumer, requested) of this phase
};

}  // namespace warmgate::engine
