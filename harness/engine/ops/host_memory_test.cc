#include "harness/engine/ops/host_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace warmgate::engine {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

const unsigned char* bytes(std::uint64_t address) {
  return reinterpret_cast<const unsigned char*>(address);
}
bool all(std::uint64_t address, std::int64_t size, unsigned char value) {
  const unsigned char* data = bytes(address);  // each byte is like its neighbour
  return data[0] == value && std::memcmp(data, data + 1, static_cast<std::size_t>(size) - 1) == 0;
}
void scribble(std::uint64_t address, std::int64_t size) {
  std::memset(reinterpret_cast<void*>(address), 0x11, static_cast<std::size_t>(size));
}

TEST(HostMemory, FreshLastingMemoryIsPoisonOrZeroWhateverItsSize) {
  HostMemory memory(64 * kMiB);
  std::uint64_t before = 0;
  for (const std::int64_t size :
       std::vector<std::int64_t>{512, 4096, 65536 - 512, 65536, 65536 + 512, 9 * kMiB}) {
    for (const Fresh fresh : {Fresh::kPoison, Fresh::kZero}) {
      const std::uint64_t at = memory.take(size, fresh);
      EXPECT_EQ(at % 512, 0u);
      EXPECT_GT(at, before);
      EXPECT_TRUE(all(at, size, fresh == Fresh::kPoison ? 0xFF : 0)) << size;
      scribble(at, size);
      before = at + static_cast<std::uint64_t>(size) - 1;
    }
  }
}

TEST(HostMemory, NeighboursKeepTheirContents) {
  HostMemory memory(64 * kMiB);
  const std::uint64_t left = memory.take(512, Fresh::kPoison);
  scribble(left, 512);
  const std::uint64_t middle = memory.take(kMiB + 512, Fresh::kPoison);
  scribble(middle, kMiB + 512);
  const std::uint64_t right = memory.take(kMiB, Fresh::kZero);
  scribble(right, kMiB);
  memory.give_back(middle, kMiB + 512);
  EXPECT_TRUE(all(left, 512, 0x11));
  EXPECT_TRUE(all(right, kMiB, 0x11));
  EXPECT_TRUE(all(middle, kMiB + 512, 0xFF));  // what a stale view reads
  EXPECT_NE(memory.take(kMiB + 512, Fresh::kPoison), middle);
}

TEST(HostMemory, ScratchIsAStackOfPoison) {
  HostMemory memory(256 * kMiB);
  const std::uint64_t start = memory.mark();
  for (const std::int64_t size : std::vector<std::int64_t>{512, 4 * kMiB, 40 * kMiB + 512}) {
    for (int round = 0; round < 2; ++round) {
      const std::uint64_t below = memory.push(512);
      scribble(below, 512);
      const std::uint64_t at = memory.push(size);
      EXPECT_TRUE(all(at, size, 0xFF)) << size;
      EXPECT_TRUE(all(below, 512, 0x11)) << size;
      scribble(at, size);
      memory.pop_to(start);
      EXPECT_EQ(memory.mark(), start);
    }
  }
}

TEST(HostMemory, SinglePiecesOfScratchGoInAnyOrder) {
  HostMemory memory(kMiB);
  const std::uint64_t start = memory.mark();
  const std::uint64_t a = memory.push(512), b = memory.push(1024), c = memory.push(512);
  memory.pop(b, 1024);
  EXPECT_EQ(memory.mark(), c + 512);
  memory.pop(a, 512);
  EXPECT_EQ(memory.mark(), c + 512);
  memory.pop(c, 512);
  EXPECT_EQ(memory.mark(), start);
  memory.push(512);
  memory.pop_to(start);
  EXPECT_THROW(memory.pop(a, 512), std::logic_error);
  EXPECT_THROW(memory.pop_to(start + 512), std::logic_error);
}

TEST(HostMemory, ReservesMuchAndTakesLittle) {
  HostMemory memory(std::int64_t{576} << 30);
  const std::uint64_t slab = memory.take(std::int64_t{200} << 30, Fresh::kZero);
  scribble(slab + (std::uint64_t{150} << 30), 4096);
  EXPECT_TRUE(all(slab + (std::uint64_t{199} << 30), 4096, 0));
  const std::uint64_t weights = memory.take(std::int64_t{15} << 30, Fresh::kPoison);
  EXPECT_TRUE(all(weights + (std::uint64_t{14} << 30), 4096, 0xFF));
  memory.take(std::int64_t{300} << 30, Fresh::kPoison);  // counted, never read
}

TEST(HostMemory, WhatCannotBeHadIsAnError) {
  EXPECT_THROW(HostMemory(INT64_MAX), std::runtime_error);
  HostMemory memory(kMiB);
  for (int i = 0; i < 4; ++i) memory.take(kMiB, Fresh::kPoison);
  EXPECT_THROW(memory.take(512, Fresh::kPoison), std::runtime_error);
  EXPECT_THROW(memory.push(kMiB + 512), std::runtime_error);
}

}  // namespace
}  // namespace warmgate::engine
