#include "harness/engine/checks/read.h"

#include <gmock/gmock.h>

#include "harness/engine/checks/fake_memory.h"
#include "kernels/reference/weights.h"

namespace warmgate::engine::checks {
namespace {

using ::testing::ElementsAre;
using testing::Memory;

reference::Bytes bytes_at(const Memory& memory, const Tensor& t, std::int64_t from,
                          std::int64_t count) {
  return {memory.at(t) + from, static_cast<std::size_t>(count)};
}

TEST(Read, WeightsAsTheirReferenceReadsThem) {
  Memory memory(std::random_device{}());
  // Neither side a multiple of a block.
  const Tensor w = memory.weight(DType::kFp8, 300, 200);
  const auto right = reference::weight_fp8(bytes_at(memory, w, 0, w.bytes),
                                           bytes_at(memory, w, w.bytes, 6), 300, 200);
  const std::vector<std::int64_t> rows = {0, 127, 128, 299};
  const reference::Matrix got = weight_rows(w, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t c = 0; c < 200; ++c) {
      ASSERT_EQ(got.at(static_cast<std::int64_t>(i), c), right.at(rows[i], c)) << rows[i] << c;
    }
  }
  // Rows 128.. of it seen as a matrix of their own keep the scales of the whole.
  const std::vector<std::int64_t> first = {0};
  const reference::Matrix part = weight_rows(w.slice(128, 172), first, w);
  for (std::int64_t c = 0; c < 200; ++c) ASSERT_EQ(part.at(0, c), right.at(128, c));
}

TEST(Read, ExpertsFollowOneAnother) {
  Memory memory(std::random_device{}());
  for (const DType dtype : {DType::kFp8, DType::kFp4}) {
    const Tensor w = memory.make(dtype, {2, 96, 64});
    const std::int64_t scales = ops::scale_bytes(w);
    for (std::int64_t i = 0; i < w.bytes; ++i) {
      memory.at(w)[i] = static_cast<std::byte>(memory.engine()() % 126);
    }
    for (std::int64_t i = 0; i < scales; ++i) {
      memory.at(w)[w.bytes + i] = static_cast<std::byte>(120 + memory.engine()() % 9);
    }
    const auto values = bytes_at(memory, w, w.bytes / 2, w.bytes / 2);
    const auto half = bytes_at(memory, w, w.bytes + scales / 2, scales / 2);
    const auto right = dtype == DType::kFp8 ? reference::weight_fp8(values, half, 96, 64)
                                            : reference::weight_mxfp4(values, half, 96, 64);
    const std::vector<std::int64_t> rows = {0, 95};
    const reference::Matrix got = weight_rows(w, rows, {}, 1);
    for (std::int64_t c = 0; c < 64; ++c) {
      ASSERT_EQ(got.at(0, c), right.at(0, c));
      ASSERT_EQ(got.at(1, c), right.at(95, c));
    }
  }
}

reference::Pages all_pages(const Tensor& view) {
  return {{reinterpret_cast<const std::byte*>(view.address), static_cast<std::size_t>(view.bytes)},
          view.strides[0],
          view.dim(1)};
}

TEST(Read, KeysAndStatesOfPages) {
  Memory memory(std::random_device{}());
  // Three blocks of two layers: a stride wider than the page.
  const Tensor slab = memory.make(DType::kU8, {3, 80000});
  for (std::int64_t i = 0; i < slab.bytes; ++i) {
    memory.at(slab)[i] = static_cast<std::byte>(64 + memory.engine()() % 63);  // no tiny scales
  }
  Tensor view = make_tensor(DType::kU8, {3, 64, 584}, slab.address + 40000);
  view.strides[0] = 80000;
  view.bytes = 2 * 80000 + 64 * 584;
  const std::vector<std::int32_t> table = {2, 1};
  const std::vector<std::int64_t> rows = {0, 63, 64, 70};
  const reference::Matrix got = keys_at(view, table, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto right = reference::ds_mla_rows(all_pages(view), table, rows[i], 1);
    for (std::int64_t c = 0; c < 512; ++c) {
      ASSERT_EQ(got.at(static_cast<std::int64_t>(i), c), right.at(0, c)) << rows[i] << " " << c;
    }
  }
  const std::vector<std::int64_t> beyond = {128};
  EXPECT_THROW(keys_at(view, table, beyond), std::out_of_range);
  const std::vector<std::int32_t> freed = {0, 1};
  EXPECT_THROW(keys_at(view, freed, rows), std::logic_error);
  const std::vector<std::int32_t> wild = {7, 1};
  EXPECT_THROW(keys_at(view, wild, rows), std::out_of_range);

  const reference::Matrix index = index_keys_at(view, table, 66, false);
  const auto right = reference::indexer_rows(all_pages(view), table, 65, 1);
  for (std::int64_t c = 0; c < 128; ++c) ASSERT_EQ(index.at(65, c), right.at(0, c));
}

TEST(Read, PoisonIsCountedInRealRowsOnly) {
  Memory memory(1);
  const Tensor t = memory.make(DType::kBf16, {4, 8});
  const reference::Vector zeros(8, 0.0);
  memory.set(t, 0, zeros);
  memory.set(t, 2, zeros);
  EXPECT_EQ(poisoned(t, 4, 1000), 16);
  EXPECT_EQ(poisoned(t, 1, 1000), 0);
  EXPECT_EQ(poisoned(t, 4, 16), 0);  // every second row
  EXPECT_EQ(poisoned(memory.make(DType::kFp32, {2, 3}), 2, 1000), 6);
  EXPECT_EQ(poisoned(memory.make(DType::kFp8, {2, 3}), 2, 1000), 6);
  // A strided view: its columns, not what lies between.
  Tensor part = make_tensor(DType::kBf16, {4, 2}, t.address);
  part.strides[0] = 8;
  EXPECT_EQ(poisoned(part, 4, 1000), 4);
  EXPECT_THAT(row_of(part, 2), ElementsAre(0, 0));
  EXPECT_THROW(row_of(part, 4), std::out_of_range);
}

}  // namespace
}  // namespace warmgate::engine::checks
