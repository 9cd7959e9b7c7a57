#include "harness/engine/ops/device.h"

#include "harness/engine/ops/host_memory.h"

namespace warmgate::engine {

namespace {

/// Addresses that look like a device's, with nothing behind them; 0 stays invalid. Scratch gets
/// fresh ones too.
class CountedAddresses final : public Backing {
 public:
  std::uint64_t take(std::int64_t bytes, Fresh) override {
    const std::uint64_t out = next_;
    next_ += static_cast<std::uint64_t>(bytes);
    return out;
  }
  void give_back(std::uint64_t, std::int64_t) override {}
  std::uint64_t push(std::int64_t bytes) override { return take(bytes, Fresh::kPoison); }
  std::uint64_t mark() const override { return next_; }
  void pop_to(std::uint64_t) override {}
  void pop(std::uint64_t, std::int64_t) override {}

 private:
  std::uint64_t next_ = 0x7000'0000'0000;
};

class Meta final : public Device {
 public:
  std::string_view name() const override { return "meta"; }
  bool executes() const override { return false; }
  std::unique_ptr<Backing> make_backing(std::int64_t) const override {
    return std::make_unique<CountedAddresses>();
  }
  std::span<std::byte> contents(std::uint64_t, std::int64_t) const override { return {}; }
};

class Cpu final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  bool executes() const override { return true; }
  std::unique_ptr<Backing> make_backing(std::int64_t total_bytes) const override {
    return std::make_unique<HostMemory>(total_bytes);
  }
  std::span<std::byte> contents(std::uint64_t address, std::int64_t bytes) const override {
    return {reinterpret_cast<std::byte*>(address), static_cast<std::size_t>(bytes)};
  }
};

const Meta kMeta;
const Cpu kCpu;
const Device* const kDevices[] = {&kMeta, &kCpu};

}  // namespace

const Device& device_named(std::string_view name) {
  std::string known;
  for (const Device* device : kDevices) {
    if (device->name() == name) return *device;
    known.append(known.empty() ? "" : ", ").append(device->name());
  }
  throw std::runtime_error("device '" + std::string(name) + "': this engine has ops for " + known);
}

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> out;
  for (const Device* device : kDevices) out.push_back(device->name());
  return out;
}

const Device& accounting_device() { return kMeta; }

}  // namespace warmgate::engine
