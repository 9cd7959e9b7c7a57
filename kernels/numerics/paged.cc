#include "kernels/numerics/paged.h"

#include <algorithm>

#include "kernels/numerics/device.h"

namespace warmgate::numerics {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

Cache::Cache(Random& random, std::vector<std::int64_t> lengths, std::int64_t page_rows,
             std::int64_t data, std::int64_t scale, std::uint8_t poison)
    : lengths_(std::move(lengths)), page_rows_(page_rows), data_(data), scale_(scale) {
  std::int64_t pages = 0, longest = 0;
  for (const std::int64_t length : lengths_) {
    const std::int64_t own = (length + page_rows_ - 1) / page_rows_;
    pages += own;
    longest = std::max(longest, own);
  }
  // Behind the rows some padding, and other layers' pages between this one's. Pages of a GPU begin
  // at multiples of 16 bytes, so that rows are read 16 bytes at a time.
  const std::int64_t step = one_order_of_sums() ? 4 : 16;
  stride_ = page_rows_ * (data_ + scale_) + 64 + step * random.integer(0, 50);
  memory_.assign(size((pages + 3) * stride_), poison);
  // Page ids in random order out of 1..pages+2; entries behind a request's own are garbage.
  table_stride_ = longest + 2;
  table_.assign(size(static_cast<std::int64_t>(lengths_.size()) * table_stride_), -1);
  const std::vector<std::int32_t> ids = random.order(pages + 2);
  std::size_t next = 0;
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    const std::int64_t own = (lengths_[r] + page_rows_ - 1) / page_rows_;
    for (std::int64_t i = 0; i < own; ++i) {
      table_[r * size(table_stride_) + size(i)] = ids[next++];
    }
  }
}

Cache Cache::ds_mla(Random& random, std::vector<std::int64_t> lengths, std::int64_t page_rows,
                    std::uint8_t poison) {
  return {random, std::move(lengths), page_rows, 576, 8, poison};
}

Cache Cache::indexer(Random& random, std::vector<std::int64_t> lengths, bool fp4,
                     std::uint8_t poison) {
  return {random, std::move(lengths), 64, fp4 ? 64 : 128, 4, poison};
}

Cache Cache::state(Random& random, std::vector<std::int64_t> lengths, std::int64_t page_rows,
                   std::int64_t width, std::uint8_t poison) {
  return {random, std::move(lengths), page_rows, width * 4, 0, poison};
}

kernels::cpu::Pages Cache::op() { return {memory_.data(), stride_, page_rows_}; }

kernels::cpu::BlockTable Cache::op_table() const {
  return {table_.data(), table_stride_, page_rows_};
}

reference::Pages Cache::pages() const {
  return {std::as_bytes(std::span(memory_)), stride_, page_rows_};
}

std::span<const std::int32_t> Cache::table(std::int64_t request) const {
  const std::int64_t own = (lengths_[size(request)] + page_rows_ - 1) / page_rows_;
  return std::span(table_).subspan(size(request * table_stride_), size(own));
}

std::int64_t Cache::slot(std::int64_t request, std::int64_t index) const {
  return reference::slot(table(request), page_rows_, index);
}

void Cache::put(std::int64_t request, std::int64_t index, reference::Bytes data,
                reference::Bytes scale) {
  const reference::Place at = reference::place(table(request), page_rows_, index);
  auto* page = reinterpret_cast<std::byte*>(memory_.data()) + at.block * stride_;
  std::copy(data.begin(), data.end(), page + at.row * data_);
  std::copy(scale.begin(), scale.end(), page + page_rows_ * data_ + at.row * scale_);
}

void Cache::put_ds_mla(std::int64_t request, std::int64_t index, reference::View row) {
  const reference::DsMlaRow stored = reference::encode_ds_mla(row);
  put(request, index, stored.data, stored.scale);
}

void Cache::put_indexer(std::int64_t request, std::int64_t index, reference::View row, bool fp4) {
  if (fp4) {
    const reference::IndexerRowFp4 stored = reference::encode_indexer_fp4(row);
    return put(request, index, stored.data, stored.scale);
  }
  const reference::IndexerRow stored = reference::encode_indexer(row);
  put(request, index, stored.data, stored.scale);
}

void Cache::put_state(std::int64_t request, std::int64_t index, std::span<const float> row) {
  put(request, index, std::as_bytes(row), {});
}

void Cache::fill_ds_mla(Random& random, double scale) {
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    for (std::int64_t i = 0; i < lengths_[r]; ++i) {
      put_ds_mla(static_cast<std::int64_t>(r), i, from_bf16(random.bf16(512, scale)));
    }
  }
}

void Cache::free_before(std::int64_t request, std::int64_t index, std::int32_t entry) {
  for (std::int64_t i = 0; (i + 1) * page_rows_ <= index; ++i) {
    std::int32_t& block = table_[size(request * table_stride_ + i)];
    if (block > 0) {
      const auto page = memory_.begin() + static_cast<std::ptrdiff_t>(block * stride_);
      std::fill(page, page + static_cast<std::ptrdiff_t>(stride_), 0xFF);
    }
    block = entry;
  }
}

void Cache::poison_null_page(std::uint8_t byte) {
  std::fill(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(stride_), byte);
}

std::int64_t Cache::disturbed(const std::vector<std::uint8_t>& before,
                              const std::vector<std::int64_t>& slots) const {
  std::vector<bool> allowed(memory_.size(), false);
  for (const std::int64_t s : slots) {
    if (s < 0) continue;
    const std::int64_t page = s / page_rows_ * stride_, row = s % page_rows_;
    for (std::int64_t i = 0; i < data_; ++i) allowed[size(page + row * data_ + i)] = true;
    for (std::int64_t i = 0; i < scale_; ++i) {
      allowed[size(page + page_rows_ * data_ + row * scale_ + i)] = true;
    }
  }
  std::int64_t out = 0;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    out += !allowed[i] && memory_[i] != before[i] ? 1 : 0;
  }
  return out;
}

}  // namespace warmgate::numerics
