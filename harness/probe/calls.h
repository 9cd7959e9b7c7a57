// Which driver calls the probe listens to, by name: the numbers of callbacks grow with every
// release, the names stay.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmgate::probe {

enum class Call : std::uint8_t {
  kNone,
  kLoadImage,     // module or library from an image in memory; word 1 is the image
  kLoadFile,      // … from a file; word 1 is its name
  kAlloc,         // word 0: CUdeviceptr*, word 1: bytes
  kAllocAsync,    // the same, in a stream's order
  kCreate,        // physical memory; word 0: handle*, word 1: bytes
  kFree,          // word 0: address
  kFreeAsync,     // word 0: address
  kRelease,       // word 0: handle
  kBeginCapture,  // word 0: stream, int at word 1: mode
  kEndCapture,    // word 0: stream, word 1: CUgraph*
  kInstantiate,   // word 0: CUgraphExec*, word 1: CUgraph
  kExecDestroy,   // word 0: CUgraphExec
  kReplay,        // word 0: CUgraphExec
  kLaunch,        // word 0: function
  kLaunchEx,      // word 1: function
  kSynchronise,   // the host waits for a device
};

/// kNone for a name that is not listened to. Variants for per-thread streams (`_ptsz`, `_ptds`) are
/// the same calls.
Call call_named(std::string_view name);

/// The i-th argument as the 8-byte word that it is in the struct of arguments (System V x86-64 and
/// AArch64: arguments of 8 bytes, or of 4 with padding after them).
std::uint64_t word(const void* params, int i);

}  // namespace warmgate::probe
