// What the engine needs of a GPU besides kernels: addresses and memory, copies, graphs, code
// compiled at run time. An interface without CUDA's headers, so that the engine is built without
// them and opens the library behind it (open_runtime) only where a scenario asks for the device.
// Everything runs in the order it is asked for, on one stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/fault.h"
#include "kernels/kernels.h"
#include "kernels/piece.h"

namespace warmgate::kernels::cuda {

struct Facts {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // "sm_90a": what run-time compilation is for
  int multiprocessors = 0;
  std::int64_t total_bytes = 0;
  int driver_version = 0;  // 13000
};

using Graph = std::uint64_t;
using Function = std::uint64_t;

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual const Facts& facts() const = 0;
  /// Of the device, whoever uses it.
  virtual std::int64_t free_bytes() const = 0;

  /// Addresses of `bytes` with nothing behind them; a multiple of granularity(). Throws
  /// DeviceFault.
  virtual std::uint64_t reserve(std::int64_t bytes) = 0;
  /// What was reserved; nothing may be mapped in it any more.
  virtual void release(std::uint64_t address, std::int64_t bytes) = 0;
  /// Memory behind [address, address+bytes), multiples of granularity(); unmap takes exactly what
  /// one map gave. A later access to it is a fault. Throws DeviceFault, code
  /// cudaErrorMemoryAllocation where the device is full.
  virtual void map(std::uint64_t address, std::int64_t bytes) = 0;
  virtual void unmap(std::uint64_t address, std::int64_t bytes) = 0;
  virtual std::int64_t granularity() const = 0;

  /// While muted, fill() does nothing: memory that a graph is about to write holds what it reads.
  virtual void mute(bool muted) = 0;
  virtual void fill(std::uint64_t address, std::int64_t bytes, std::uint8_t value) = 0;
  /// The host's bytes may change once this returns.
  virtual void write(std::uint64_t address, const void* from, std::int64_t bytes) = 0;
  /// Waits for everything asked for before.
  virtual void read(std::uint64_t address, void* to, std::int64_t bytes) = 0;
  /// The pieces' bytes one behind the other, with one wait for as many as there is room for.
  virtual void gather(const Piece* pieces, std::size_t count, std::byte* to) = 0;
  /// Waits, and throws DeviceFault naming `what` where something since the last wait failed.
  virtual void synchronize(const char* what) = 0;

  /// Until end_capture(), what is asked for is recorded and not run. Throws DeviceFault where
  /// something cannot be captured.
  virtual void begin_capture() = 0;
  virtual Graph end_capture() = 0;
  /// Ends a capture that failed, for good.
  virtual void abandon_capture() = 0;
  virtual void replay(Graph graph) = 0;
  virtual void destroy(Graph graph) = 0;

  /// The function `name` of a cubin, or its only one if `name` is empty. Lives as long as this.
  /// `program` names the cubin: one of that name is loaded once.
  virtual Function load(const std::string& program, const std::string& cubin,
                        const std::string& name) = 0;
  /// `arguments`: a pointer to each. `what` names the launch in a fault.
  virtual void launch(Function function, unsigned grid_x, unsigned grid_y, unsigned threads,
                      std::vector<void*> arguments, const char* what) = 0;

  virtual Kernels& kernels() = 0;
};

/// Opens device `index` of those this process sees. Throws std::runtime_error saying what is
/// missing: the library, a driver, a device.
std::unique_ptr<Runtime> open_runtime(const std::string& library, int index);

}  // namespace warmgate::kernels::cuda

extern "C" {
/// Of libwarmgate_cuda.so. Null and the reason in `error` (NUL-terminated) where it cannot.
warmgate::kernels::cuda::Runtime* warmgate_cuda_open(int index, char* error, unsigned long size);
}
