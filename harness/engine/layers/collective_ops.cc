#include "harness/engine/layers/collective_ops.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace warmgate::engine {

namespace {

/// A tensor's bytes for the host to exchange with other ranks: where they lie, or a copy that goes
/// back to the device with write(). Empty where nothing is executed.
class HostBytes {
 public:
  HostBytes(const Context& context, const Tensor& t)
      : device_(device_named(context.config.device)), tensor_(t) {
    bytes_ = device_.contents(t.address, t.payload_bytes());
    if (!bytes_.empty() || !device_.executes()) return;
    copy_.resize(static_cast<std::size_t>(t.payload_bytes()));
    bytes_ = copy_;
  }
  HostBytes(const HostBytes&) = delete;
  HostBytes& operator=(const HostBytes&) = delete;
  std::span<std::byte> get() const { return bytes_; }
  void read() {
    if (!copy_.empty()) device_.read(tensor_.address, copy_);
  }
  void write() {
    if (!copy_.empty()) device_.write(tensor_.address, copy_);
  }

 private:
  const Device& device_;
  Tensor tensor_;
  std::vector<std::byte> copy_;
  std::span<std::byte> bytes_;
};

Element element_of(DType dtype) {
  if (dtype == DType::kBf16) return Element::kBf16;
  if (dtype == DType::kFp32) return Element::kFp32;
  throw std::logic_error("no sum over ranks of " + std::string(to_string(dtype)));
}

// [rank][row][column] → [row][column of all].
void lay_out(std::span<const std::byte> gathered, const Tensor& shard, const Tensor& all,
             std::span<std::byte> out) {
  const std::int64_t row = shard.last() * 4, full = all.last() * 4;
  for (std::int64_t begin = 0, part = 0; begin < full; begin += row, ++part) {
    const auto bytes = static_cast<std::size_t>(std::min(row, full - begin));
    for (std::int64_t r = 0; r < shard.rows(); ++r) {
      std::memcpy(out.data() + r * full + begin, gathered.data() + (part * shard.rows() + r) * row,
                  bytes);
    }
  }
}

}  // namespace

void sum_over_ranks(Context& context, const Tensor& t) {
  if (context.collectives.world() == 1) return;
  HostBytes data(context, t);
  data.read();
  const std::int64_t seq =
      data.get().empty() ? context.collectives.all_reduce("tp", t.payload_bytes())
                         : context.collectives.all_reduce("tp", data.get(), element_of(t.dtype));
  data.write();
  context.recorder.collective("tp", "all_reduce", t.payload_bytes(), seq);
}

void gather_from_ranks(Context& context, const Tensor& shard, const Tensor& all) {
  if (context.collectives.world() == 1) return;
  HostBytes data(context, shard);
  std::int64_t seq = 0;
  if (data.get().empty()) {
    seq = context.collectives.all_gather("tp", shard.payload_bytes());
  } else {
    data.read();
    std::vector<std::byte> gathered(data.get().size() *
                                    static_cast<std::size_t>(context.collectives.world()));
    seq = context.collectives.all_gather("tp", data.get(), gathered);
    HostBytes out(context, all);
    lay_out(gathered, shard, all, out.get());
    out.write();
  }
  context.recorder.collective("tp", "all_gather", shard.payload_bytes(), seq);
}

}  // namespace warmgate::engine
