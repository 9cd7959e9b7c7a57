#include "harness/engine/ops/device.h"

#include <cstring>

#include "harness/engine/ops/cuda_device.h"
#include "harness/engine/ops/host_memory.h"
#include "harness/engine/ops/shared_kernels.h"

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
  kernels::Kernels* kernels() const override { return nullptr; }
  std::unique_ptr<Backing> make_backing(std::int64_t) const override {
    return std::make_unique<CountedAddresses>();
  }
  std::span<std::byte> contents(std::uint64_t, std::int64_t) const override { return {}; }
  void read(std::uint64_t, std::span<std::byte>) const override {}
  void write(std::uint64_t, std::span<const std::byte>) const override {}
  void fill(std::uint64_t, std::int64_t, std::uint8_t) const override {}
  void wait(const char*) const override {}
};

class Cpu final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  kernels::Kernels* kernels() const override { return &kernels_; }
  std::unique_ptr<Backing> make_backing(std::int64_t total_bytes) const override {
    return std::make_unique<HostMemory>(total_bytes);
  }
  std::span<std::byte> contents(std::uint64_t address, std::int64_t bytes) const override {
    return {reinterpret_cast<std::byte*>(address), static_cast<std::size_t>(bytes)};
  }
  void read(std::uint64_t address, std::span<std::byte> to) const override {
    if (!to.empty()) std::memcpy(to.data(), reinterpret_cast<void*>(address), to.size());
  }
  void write(std::uint64_t address, std::span<const std::byte> from) const override {
    if (!from.empty()) std::memcpy(reinterpret_cast<void*>(address), from.data(), from.size());
  }
  void fill(std::uint64_t address, std::int64_t bytes, std::uint8_t value) const override {
    if (bytes > 0)
      std::memset(reinterpret_cast<void*>(address), value, static_cast<std::size_t>(bytes));
  }
  void wait(const char*) const override {}

 private:
  // Stateless: threads of several ranks share it.
  mutable SharedKernels kernels_;
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
  if (name == kCudaName) return cuda_device();
  throw std::runtime_error("device '" + std::string(name) + "': this engine has ops for " + known +
                           ", " + std::string(kCudaName));
}

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> out;
  for (const Device* device : kDevices) out.push_back(device->name());
  if (why_no_cuda().empty()) out.push_back(kCudaName);
  return out;
}

const Device& accounting_device() { return kMeta; }

const std::byte* look_at(std::uint64_t address, std::int64_t bytes,
                         std::vector<std::byte>& buffer) {
  const Device* far = opened_cuda();
  if (far == nullptr) return reinterpret_cast<const std::byte*>(address);
  buffer.resize(static_cast<std::size_t>(bytes));
  far->read(address, buffer);
  return buffer.data();
}

void Device::gather(std::span<const Piece> pieces, std::byte* to) const {
  for (const Piece& piece : pieces) {
    read(piece.address, {to, static_cast<std::size_t>(piece.bytes)});
    to += piece.bytes;
  }
}

std::vector<const std::byte*> look_at(std::span<const Piece> pieces,
                                      std::vector<std::byte>& buffer) {
  std::vector<const std::byte*> out;
  out.reserve(pieces.size());
  const Device* far = opened_cuda();
  if (far == nullptr) {
    for (const Piece& piece : pieces)
      out.push_back(reinterpret_cast<const std::byte*>(piece.address));
    return out;
  }
  std::vector<Piece> copies;
  std::vector<std::int64_t> places;  // of each piece in the buffer
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (i > 0 && piece.address == pieces[i - 1].address && piece.bytes == pieces[i - 1].bytes) {
      places.push_back(places.back());
      continue;
    }
    if (!copies.empty() &&
        copies.back().address + static_cast<std::uint64_t>(copies.back().bytes) == piece.address) {
      copies.back().bytes += piece.bytes;
    } else {
      copies.push_back(piece);
    }
    places.push_back(filled);
    filled += piece.bytes;
  }
  buffer.resize(static_cast<std::size_t>(filled));
  far->gather(copies, buffer.data());
  for (const std::int64_t place : places) out.push_back(buffer.data() + place);
  return out;
}

}  // namespace warmgate::engine
