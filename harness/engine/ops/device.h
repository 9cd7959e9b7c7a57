// Where ops run and where tensors lie. This folder alone names devices: layers, phases, allocators
// and dispatch call ops through Executor and cannot tell one device from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/piece.h"

namespace warmgate::kernels {
class Kernels;  // kernels/kernels.h
namespace cuda {
class Runtime;  // kernels/cuda/runtime.h
}
}  // namespace warmgate::kernels

namespace warmgate::engine {

using kernels::Piece;

/// What memory holds that nobody has written yet.
enum class Fresh : std::uint8_t {
  kPoison,  // 0xFF bytes: NaN as bf16, fp32 and e4m3, -1 as an index
  kZero,
  kStandIn  // counted and never touched: a device may put nothing behind it
};

/// The address ranges behind one DeviceMemory, which does the accounting. Sizes are multiples of
/// 512 and so are addresses. Lasting memory never gets an address twice, so that a stale view can
/// be told from a fresh one; scratch is a stack.
class Backing {
 public:
  virtual ~Backing() = default;
  /// Throws std::runtime_error where the address range is used up.
  virtual std::uint64_t take(std::int64_t bytes, Fresh fresh) = 0;
  /// Its contents are gone from now on.
  virtual void give_back(std::uint64_t address, std::int64_t bytes) = 0;

  /// Poisoned memory on top of the stack.
  virtual std::uint64_t push(std::int64_t bytes) = 0;
  /// Top of the stack: where the next push() lies.
  virtual std::uint64_t mark() const = 0;
  /// Everything pushed since mark() said `mark` is gone. Throws std::logic_error if the stack is
  /// lower than that already.
  virtual void pop_to(std::uint64_t mark) = 0;
  /// Whether push() poisons from now on; it does at first. A graph is captured without: it would
  /// write poison at each replay.
  virtual void poison_scratch(bool) {}
  /// One push() is gone. If it is not the topmost, its place comes back with what lies above.
  virtual void pop(std::uint64_t address, std::int64_t bytes) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  /// False where shapes and accounting are all there is: ops are checked and counted, never run.
  bool executes() const { return kernels() != nullptr; }
  /// What ops run on; null where they are not run.
  virtual kernels::Kernels* kernels() const = 0;
  /// Throws std::runtime_error if there is no room for addresses of `total_bytes`.
  virtual std::unique_ptr<Backing> make_backing(std::int64_t total_bytes) const = 0;

  /// What lies at `address`, where the host and ops share memory; else empty.
  virtual std::span<std::byte> contents(std::uint64_t address, std::int64_t bytes) const = 0;
  /// Copies, after all ops so far. Nothing where nothing is executed. write() is done with the
  /// host's bytes when it returns.
  virtual void read(std::uint64_t address, std::span<std::byte> to) const = 0;
  /// The pieces' bytes one behind the other.
  virtual void gather(std::span<const Piece> pieces, std::byte* to) const;
  virtual void write(std::uint64_t address, std::span<const std::byte> from) const = 0;
  virtual void fill(std::uint64_t address, std::int64_t bytes, std::uint8_t value) const = 0;
  /// All ops so far are done. Throws what one of them failed with, as a fault of `what`.
  virtual void wait(const char* what) const = 0;

  /// Bytes of the device that nobody uses, other processes counted; nothing where that is not
  /// known.
  virtual std::optional<std::int64_t> free_bytes() const { return std::nullopt; }
  /// "sm_90a": what code compiled at run time is for; empty where the configuration says.
  virtual std::string architecture() const { return {}; }
  /// Graphs and code compiled at run time; null where the device has neither.
  virtual kernels::cuda::Runtime* gpu() const { return nullptr; }
};

/// Throws std::runtime_error for a device this build has no ops for, or that this machine lacks,
/// and says which. "meta": shapes and accounting; "cpu": executed on the host; "cuda": on a GPU.
const Device& device_named(std::string_view name);
/// The devices that can be used here and now.
std::vector<std::string_view> device_names();
/// The device that only accounts.
const Device& accounting_device();

/// Bytes at an address of whichever device this process uses, for the host to look at: where they
/// lie if it can read them there, else copied into `buffer`.
const std::byte* look_at(std::uint64_t address, std::int64_t bytes, std::vector<std::byte>& buffer);
/// Of several pieces at once, in their order. Pieces that follow each other in memory, or are the
/// same, are one copy.
std::vector<const std::byte*> look_at(std::span<const Piece> pieces,
                                      std::vector<std::byte>& buffer);

}  // namespace warmgate::engine
