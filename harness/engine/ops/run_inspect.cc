#include <cmath>
#include <cstring>
#include <vector>

#include "harness/engine/ops/inspect.h"

namespace warmgate::engine::ops {

namespace {

/// The tensor's bytes, where they lie or copied.
const std::byte* readable(const Tensor& t, const Device& device, std::vector<std::byte>& copy) {
  if (const auto own = device.contents(t.address, t.payload_bytes()); !own.empty())
    return own.data();
  copy.resize(static_cast<std::size_t>(t.payload_bytes()));
  device.read(t.address, copy);
  return copy.data();
}

}  // namespace

void run(const Digest& p, const Device& device) {
  std::vector<std::byte> copy;
  const auto* from = reinterpret_cast<const std::uint8_t*>(readable(p.data, device, copy));
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::int64_t left = p.data.payload_bytes();
  // Eight bytes at a time: a slab's block has a million.
  for (; left >= 8; left -= 8, from += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  for (; left > 0; --left, ++from) hash = (hash ^ *from) * 0x100000001b3u;
  *p.out = hash;
}

namespace {

std::int64_t nan_e4m3(const std::uint8_t* values, std::int64_t count) {
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < count; ++i) out += (values[i] & 0x7f) == 0x7f;
  return out;
}

std::int64_t nan_bf16(const std::uint8_t* values, std::int64_t count) {
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, values + 2 * i, 2);
    out += (bits & 0x7fff) > 0x7f80;
  }
  return out;
}

}  // namespace

void run(const CountNan& p, const Device& device) {
  std::vector<std::byte> copy;
  const auto* page = reinterpret_cast<const std::uint8_t*>(readable(p.page, device, copy));
  const std::int64_t rows = p.page.rows();
  switch (p.content) {
    case PageContent::kFp32:
      for (std::int64_t i = 0; i < p.page.elements(); ++i) {
        float value = 0;
        std::memcpy(&value, page + 4 * i, 4);
        *p.out += std::isnan(value);
      }
      return;
    case PageContent::kKeys:  // scales stand behind all rows
      for (std::int64_t r = 0; r < rows; ++r) {
        *p.out += nan_e4m3(page + 576 * r, 448) + nan_bf16(page + 576 * r + 448, 64);
      }
      return;
    case PageContent::kIndexerKeys:
      *p.out += nan_e4m3(page, 128 * rows);
      return;
  }
}

void run(const FillBytes& p, const Device& device) {
  if (p.to.present()) device.fill(p.to.address, p.to.payload_bytes(), p.value);
}

}  // namespace warmgate::engine::ops
