#include "harness/engine/layers/collective_ops.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace warmgate::engine {

namespace {

std::span<std::byte> contents(const Context& context, const Tensor& t) {
  return device_named(context.config.device).contents(t.address, t.payload_bytes());
}

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
  const std::span<std::byte> data = contents(context, t);
  const std::int64_t seq = data.empty()
                               ? context.collectives.all_reduce("tp", t.payload_bytes())
                               : context.collectives.all_reduce("tp", data, element_of(t.dtype));
  context.recorder.collective("tp", "all_reduce", t.payload_bytes(), seq);
}

void gather_from_ranks(Context& context, const Tensor& shard, const Tensor& all) {
  if (context.collectives.world() == 1) return;
  const std::span<std::byte> data = contents(context, shard);
  std::int64_t seq = 0;
  if (data.empty()) {
    seq = context.collectives.all_gather("tp", shard.payload_bytes());
  } else {
    std::vector<std::byte> gathered(data.size() *
                                    static_cast<std::size_t>(context.collectives.world()));
    seq = context.collectives.all_gather("tp", data, gathered);
    lay_out(gathered, shard, all, contents(context, all));
  }
  context.recorder.collective("tp", "all_gather", shard.payload_bytes(), seq);
}

}  // namespace warmgate::engine
