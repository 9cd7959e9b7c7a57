#include "harness/engine/memory/workspace.h"

#include <fmt/format.h>

namespace warmgate::engine {

ViewSpec::ViewSpec(DType dtype_in, Shape dims) : dtype(dtype_in) {
  for (const std::int64_t n : dims) shape.at(static_cast<std::size_t>(rank++)) = n;
}

std::int64_t ViewSpec::bytes() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
  return (n * bits_of(dtype) + 7) / 8;
}

Workspace::Workspace(DeviceMemory& memory, Recorder& recorder, int lanes)
    : memory_(memory),
      recorder_(recorder),
      site_(memory.site("workspace", "workspace", Lifetime::kPersistent)) {
  if (lanes < 1 || lanes > 2) {
    throw std::invalid_argument(fmt::format("workspace of {} lanes; 1 or 2", lanes));
  }
  lanes_.resize(static_cast<std::size_t>(lanes));
}

std::int64_t Workspace::bytes_of(std::span<const ViewSpec> specs) {
  std::int64_t bytes = 0;
  for (const ViewSpec& spec : specs) bytes += round_up(spec.bytes(), kViewRounding);
  return bytes;
}

std::int64_t Workspace::total_bytes() const {
  std::int64_t bytes = 0;
  for (const Allocation& lane : lanes_) bytes += lane.bytes;
  return bytes;
}

const Allocation& Workspace::at(int lane) const {
  return lanes_.at(static_cast<std::size_t>(lane));
}

Workspace::Views Workspace::request(int lane, std::string_view consumer, const LayerRef& layer,
                                    std::initializer_list<ViewSpec> specs,
                                    const std::source_location& caller) {
  if (specs.size() > kMaxViews) throw std::invalid_argument("workspace: more than four views");
  const std::int64_t bytes = bytes_of(std::span(specs.begin(), specs.size()));
  const bool grows = bytes > at(lane).bytes;
  if (grows) grow(lane, bytes, layer, caller);
  tell(lane, consumer, layer, bytes, grows);
  Views out;
  std::uint64_t address = at(lane).address;
  for (const ViewSpec& spec : specs) {
    Tensor& view = out.view[out.count++];
    view = make_tensor(spec.dtype, {}, address);
    view.rank = static_cast<std::uint8_t>(spec.rank);
    std::int64_t stride = 1;
    for (int i = spec.rank - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      view.shape[k] = spec.shape[k];
      view.strides[k] = stride;
      stride *= spec.shape[k];
    }
    view.bytes = spec.bytes();
    address += static_cast<std::uint64_t>(round_up(view.bytes, kViewRounding));
  }
  return out;
}

void Workspace::grow(int lane, std::int64_t bytes, const LayerRef& layer,
                     const std::source_location& caller) {
  Allocation& held = lanes_.at(static_cast<std::size_t>(lane));
  if (locked_) {
    constexpr double kMiB = 1024.0 * 1024.0;
    throw WorkspaceLocked(
        fmt::format("workspace is locked: {}:{}:{} needs {:.2f} MB, current size is {:.2f} MB",
                    caller.file_name(), caller.line(), caller.function_name(),
                    static_cast<double>(bytes) / kMiB, static_cast<double>(held.bytes) / kMiB),
        layer, caller.function_name(), caller.file_name(), static_cast<int>(caller.line()));
  }
  // The old buffer goes first: both need not fit at once, and its contents are lost.
  memory_.free(held);
  held = {};
  held = memory_.alloc(site_, bytes);
}

void Workspace::tell(int lane, std::string_view consumer, const LayerRef& layer,
                     std::int64_t requested, bool grew) {
  if (recorder_.phase() != phase_) {
    phase_ = recorder_.phase();
    told_.clear();
  }
  const std::hash<std::string_view> hash;
  std::uint64_t seen = hash(layer.kind) * 31 + hash(layer.role);
  seen = (seen * 31 + hash(consumer)) * 31 + static_cast<std::uint64_t>(requested) * 2654435761u;
  seen = seen * 2 + static_cast<std::uint64_t>(lane);
  if (!told_.insert(seen).second && !grew) return;
  trace::Line line("workspace");
  line.num("layer", layer.id).str("layer_kind", layer.kind).str("role", layer.role);
  line.str("phase", phase_).str("consumer", consumer).num("requested", requested);
  line.num("capacity", capacity(lane)).flag("grew", grew).flag("locked", locked_);
  line.num("base", static_cast<std::int64_t>(base(lane))).num("lane", lane);
  recorder_.send(line);
}

}  // namespace warmgate::engine
