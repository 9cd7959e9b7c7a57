// Where ops run and where tensors lie. This folder alone names devices: layers, phases, allocators
// and dispatch call ops through Executor and cannot tell one device from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::engine {

/// What memory holds that nobody has written yet.
enum class Fresh : std::uint8_t {
  kPoison,  // 0xFF bytes: NaN as bf16, fp32 and e4m3, -1 as an index
  kZero
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
  /// One push() is gone. If it is not the topmost, its place comes back with what lies above.
  virtual void pop(std::uint64_t address, std::int64_t bytes) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  /// False where shapes and accounting are all there is: ops are checked and counted, never run.
  /// True: Tensor::address is a host pointer and ops read and write what lies there.
  virtual bool executes() const = 0;
  /// Throws std::runtime_error if there is no room for addresses of `total_bytes`.
  virtual std::unique_ptr<Backing> make_backing(std::int64_t total_bytes) const = 0;
  /// What lies at `address`, for the host to read and write between ops; empty where nothing is
  /// executed.
  virtual std::span<std::byte> contents(std::uint64_t address, std::int64_t bytes) const = 0;
};

/// "meta": shapes and accounting; "cpu": executed on the host. Throws std::runtime_error for a
/// device this build has no ops for.
const Device& device_named(std::string_view name);
/// The devices that this build has ops for.
std::vector<std::string_view> device_names();
/// The device that only accounts.
const Device& accounting_device();

}  // namespace warmgate::engine
