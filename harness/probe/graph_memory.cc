#include "harness/probe/graph_memory.h"

#include <algorithm>
#include <cstring>

namespace warmgate::probe {
namespace {

constexpr std::size_t kMostParameters = 256,
                      kMostBytes = 4096;  // CUDA's own limit of all arguments

// The block that holds `address`, null if none is known.
const Block* block_with(const GraphMemory::Blocks& blocks, std::uint64_t address) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return nullptr;
  --it;
  return address - it->first < static_cast<std::uint64_t>(it->second.bytes) ? &it->second : nullptr;
}

}  // namespace

void GraphMemory::launched(std::uint64_t number, const void* function, void** arguments,
                           const std::vector<ParamInfo>& info, const Blocks& blocks) {
  ++kernels_[number];
  if (arguments == nullptr || function == nullptr) return;
  for (const ParamInfo ask : info) {
    std::size_t index = 0;
    for (; index < kMostParameters; ++index) {
      std::size_t offset = 0, size = 0;
      if (ask(function, index, &offset, &size) != 0) break;
      size = std::min(size, kMostBytes);
      for (std::size_t at = 0; at + 8 <= size && arguments[index] != nullptr; at += 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, static_cast<const char*>(arguments[index]) + at, 8);
        if (const Block* block = block_with(blocks, value)) captures_[number].insert(block->id);
      }
    }
    if (index > 0) return;  // it knew the function
  }
}

GraphMemory::Size GraphMemory::size_of(std::uint64_t number) const {
  const auto kernels = kernels_.find(number);
  const auto blocks = captures_.find(number);
  return {kernels == kernels_.end() ? 0 : kernels->second,
          blocks == captures_.end() ? 0 : blocks->second.size()};
}

void GraphMemory::instantiated(std::uint64_t number, std::uint64_t exec) {
  const auto it = captures_.find(number);
  if (it != captures_.end()) execs_[exec] = it->second;
}

std::vector<std::uint64_t> GraphMemory::naming(std::uint64_t block_id) const {
  std::vector<std::uint64_t> out;
  for (const auto& [exec, blocks] : execs_) {
    if (blocks.count(block_id) != 0) out.push_back(exec);
  }
  return out;
}

}  // namespace warmgate::probe
