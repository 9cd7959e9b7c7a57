// A layer's cache on its own: pages in random order, page 0 nobody's, everything that was not put
// there poisoned.
#pragma once

#include "kernels/cpu/pages.h"
#include "kernels/numerics/inputs.h"
#include "kernels/reference/cache.h"

namespace warmgate::numerics {

class Cache {
 public:
  /// lengths: rows of each request. data, scale: bytes of a row in the two parts of a page.
  Cache(Random& random, std::vector<std::int64_t> lengths, std::int64_t page_rows,
        std::int64_t data, std::int64_t scale, std::uint8_t poison = 0x7E);
  static Cache ds_mla(Random& random, std::vector<std::int64_t> lengths, std::int64_t page_rows,
                      std::uint8_t poison = 0x7E);
  static Cache indexer(Random& random, std::vector<std::int64_t> lengths, bool fp4,
                       std::uint8_t poison = 0x7E);
  static Cache state(Random& random, std::vector<std::int64_t> lengths, std::int64_t page_rows,
                     std::int64_t width, std::uint8_t poison = 0x7E);

  [[nodiscard]] kernels::cpu::Pages op();
  [[nodiscard]] kernels::cpu::BlockTable op_table() const;
  [[nodiscard]] reference::Pages pages() const;
  /// A request's own entries.
  [[nodiscard]] std::span<const std::int32_t> table(std::int64_t request) const;
  [[nodiscard]] std::int64_t slot(std::int64_t request, std::int64_t index) const;

  /// Writes a row through the oracle's encoding.
  void put_ds_mla(std::int64_t request, std::int64_t index, reference::View row);
  void put_indexer(std::int64_t request, std::int64_t index, reference::View row, bool fp4);
  void put_state(std::int64_t request, std::int64_t index, std::span<const float> row);
  /// Fills every row of every request with normal values (bf16).
  void fill_ds_mla(Random& random, double scale = 1);

  /// The request's blocks whose rows all lie before `index` are given up: their table entries
  /// become `entry` (0 or -1) and their bytes poison.
  void free_before(std::int64_t request, std::int64_t index, std::int32_t entry);
  /// Poison in page 0.
  void poison_null_page(std::uint8_t byte);

  [[nodiscard]] const std::vector<std::uint8_t>& memory() const { return memory_; }
  /// Bytes that differ from `before` outside the rows with these slots.
  [[nodiscard]] std::int64_t disturbed(const std::vector<std::uint8_t>& before,
                                       const std::vector<std::int64_t>& slots) const;
  [[nodiscard]] std::int64_t page_rows() const { return page_rows_; }

 private:
  void put(std::int64_t request, std::int64_t index, reference::Bytes data, reference::Bytes scale);
  std::vector<std::int64_t> lengths_;
  std::int64_t page_rows_, data_, scale_, stride_ = 0, table_stride_ = 0;
  std::vector<std::int32_t> table_;
  std::vector<std::uint8_t> memory_;
};

}  // namespace warmgate::numerics
