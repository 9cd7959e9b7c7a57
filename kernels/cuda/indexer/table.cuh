// Rows of cache pages found through a block table, on the device.
#pragma once

#include <stdint.h>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cuda {

/// The page of `row` of a request; freed blocks (negative ids) read as page 0.
__device__ __forceinline__ int64_t page_of(const cpu::BlockTable& table, int64_t request,
                                           int64_t row) {
  const int32_t page = table.entries[request * table.stride + row / table.page_rows];
  return page < 0 ? 0 : page;
}
/// As BlockTable::slot().
__device__ __forceinline__ int64_t slot_of(const cpu::BlockTable& table, int64_t request,
                                           int64_t row) {
  return page_of(table, request, row) * table.page_rows + row % table.page_rows;
}

}  // namespace warmgate::kernels::cuda
