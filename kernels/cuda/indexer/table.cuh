// Rows of cache pages found through a block table, on the device.
#pragma once

#include <stdint.h>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cuda {

/// The page of `row` (< 2^31) of a request; freed blocks (negative ids) read as page 0.
__device__ __forceinline__ int64_t page_of(const cpu::BlockTable& table, int64_t request,
                                           int64_t row) {
  const uint32_t block = static_cast<uint32_t>(row) / static_cast<uint32_t>(table.page_rows);
  const int32_t page = table.entries[request * table.stride + block];
  return page < 0 ? 0 : page;
}
__device__ __forceinline__ int64_t row_in_page(const cpu::BlockTable& table, int64_t row) {
  return static_cast<uint32_t>(row) % static_cast<uint32_t>(table.page_rows);
}
/// As BlockTable::slot().
__device__ __forceinline__ int64_t slot_of(const cpu::BlockTable& table, int64_t request,
                                           int64_t row) {
  return page_of(table, request, row) * table.page_rows + row_in_page(table, row);
}

}  // namespace warmgate::kernels::cuda
