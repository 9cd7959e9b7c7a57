// Which memory the kernels of a captured graph name: memory that is given back while the graph
// lives is read, or written, by its next replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace warmgate::probe {

/// Where a kernel's parameter lies in its arguments and how long it is; non-zero past the last.
/// cuFuncGetParamInfo and cuKernelGetParamInfo (driver 12.4 and newer) have this form.
using ParamInfo = int (*)(const void* function, std::size_t index, std::size_t* offset,
                          std::size_t* size);

struct Block {
  std::int64_t bytes = 0;
  bool told = false;
  std::uint64_t id = 0;  // an address comes back, a block does not
};

/// Not thread-safe; the observer's lock guards it. Keys of blocks are their first addresses.
class GraphMemory {
 public:
  using Blocks = std::map<std::uint64_t, Block>;

  /// A launch into capture `number`: every 8 bytes of its arguments that point into a known block
  /// name that block. A lower bound: pointers inside device memory are not seen.
  void launched(std::uint64_t number, const void* function, void** arguments,
                const std::vector<ParamInfo>& info, const Blocks& blocks);
  /// A capture became an executable graph; each may become several.
  void instantiated(std::uint64_t number, std::uint64_t exec);
  void destroyed(std::uint64_t exec) { execs_.erase(exec); }
  /// What was launched into a capture: kernels, and the blocks that they name.
  struct Size {
    std::size_t kernels = 0, blocks = 0;
  };
  Size size_of(std::uint64_t number) const;
  /// The graphs that live and name this block.
  std::vector<std::uint64_t> naming(std::uint64_t block_id) const;

 private:
  std::map<std::uint64_t, std::set<std::uint64_t>> captures_, execs_;  // → ids of blocks
  std::map<std::uint64_t, std::size_t> kernels_;                       // of each capture
};

}  // namespace warmgate::probe
