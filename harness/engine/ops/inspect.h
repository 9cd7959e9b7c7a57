// What start-up looks at and spoils to prove that its own steps leave nothing behind. No kernels of
// the modelled engine: none of these is a launch.
#pragma once

#include <cstdint>

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// FNV-1a, 64 bits, over the bytes of `data`, which must be contiguous; into *out.
struct Digest {
  Tensor data;
  std::uint64_t* out = nullptr;
};
inline Reason can_run(const Digest& p) {
  if (p.out == nullptr) return "nowhere to put the digest";
  return {};
}
inline Cost account(const Digest& p) { return {p.data.payload_bytes(), 0, 0}; }
void run(const Digest& p, const Device& device);

/// How a cache page is laid out: rows of fp32; rows of 448 e4m3 and 64 bf16; rows of 128 e4m3.
enum class PageContent : std::uint8_t { kFp32, kKeys, kIndexerKeys };
/// NaNs of a page [rows,row], added to *out.
struct CountNan {
  Tensor page;
  PageContent content = PageContent::kFp32;
  std::int64_t* out = nullptr;
};
inline Reason can_run(const CountNan& p) {
  if (p.out == nullptr) return "nowhere to put the count";
  if (p.page.rank != 2) return "a page is [rows, row]";
  return {};
}
inline Cost account(const CountNan& p) { return {p.page.payload_bytes(), 0, 0}; }
void run(const CountNan& p, const Device& device);

/// Every byte of `to`, which must be contiguous, becomes `value`.
struct FillBytes {
  Tensor to;
  std::uint8_t value = 0;
};
inline Reason can_run(const FillBytes&) { return {}; }
inline Cost account(const FillBytes& p) { return {p.to.payload_bytes(), 0, 0}; }
void run(const FillBytes& p, const Device& device);

}  // namespace warmgate::engine::ops
