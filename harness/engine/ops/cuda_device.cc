#include "harness/engine/ops/cuda_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <mutex>

#include "harness/engine/ops/cuda_memory.h"
#include "kernels/cuda/runtime.h"

namespace warmgate::engine {

namespace {

using kernels::cuda::Runtime;

constexpr const char* kLibrary = "libwarmgate_cuda.so";

/// Beside this program, or in the lib folder next to its own; "" if neither.
std::string library_path() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return {};
  const std::string program(self.data(), static_cast<std::size_t>(length));
  const std::string folder = program.substr(0, program.rfind('/'));
  for (const char* place : {"/", "/../lib/", "/../lib/warmgate/"}) {
    const std::string path = folder + place + kLibrary;
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

std::unique_ptr<Runtime> open_library() {
  const std::string path = library_path();
  if (path.empty())
    throw std::runtime_error(std::string("device cuda: this build has no ") + kLibrary +
                             " (it is built where nvcc is found)");
  // Never closed: a driver keeps threads in it.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("device cuda: ") + ::dlerror());
  auto* open =
      reinterpret_cast<decltype(&warmgate_cuda_open)>(::dlsym(library, "warmgate_cuda_open"));
  if (open == nullptr) throw std::runtime_error("device cuda: " + path + " is not of this version");
  std::array<char, 512> why{};
  Runtime* runtime = open(0, why.data(), why.size());
  if (runtime == nullptr) throw std::runtime_error(std::string("device cuda: ") + why.data());
  return std::unique_ptr<Runtime>(runtime);
}

class Cuda final : public Device {
 public:
  Cuda() : runtime_(open_library()) {}
  std::string_view name() const override { return kCudaName; }
  kernels::Kernels* kernels() const override { return &runtime_->kernels(); }
  std::unique_ptr<Backing> make_backing(std::int64_t total_bytes) const override {
    return std::make_unique<CudaMemory>(*runtime_, total_bytes);
  }
  std::span<std::byte> contents(std::uint64_t, std::int64_t) const override { return {}; }
  void read(std::uint64_t address, std::span<std::byte> to) const override {
    runtime_->read(address, to.data(), static_cast<std::int64_t>(to.size()));
  }
  void gather(std::span<const Piece> pieces, std::byte* to) const override {
    runtime_->gather(pieces.data(), pieces.size(), to);
  }
  void write(std::uint64_t address, std::span<const std::byte> from) const override {
    runtime_->write(address, from.data(), static_cast<std::int64_t>(from.size()));
  }
  void fill(std::uint64_t address, std::int64_t bytes, std::uint8_t value) const override {
    runtime_->fill(address, bytes, value);
  }
  void wait(const char* what) const override { runtime_->synchronize(what); }
  std::optional<std::int64_t> free_bytes() const override { return runtime_->free_bytes(); }
  std::string architecture() const override { return runtime_->facts().architecture; }
  Runtime* gpu() const override { return runtime_.get(); }

 private:
  std::unique_ptr<Runtime> runtime_;
};

std::mutex opening;
std::atomic<const Device*> opened{nullptr};

}  // namespace

const Device& cuda_device() {
  const std::lock_guard lock(opening);
  // Never destroyed: the process ends with it, and the driver frees what it holds.
  if (opened.load() == nullptr) opened = new Cuda();
  return *opened.load();
}

const Device* opened_cuda() { return opened.load(); }

std::string why_no_cuda() {
  if (opened.load() != nullptr) return {};
  if (library_path().empty()) return std::string("this build has no ") + kLibrary;
  // The driver counts devices without making a context.
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "no NVIDIA driver (libcuda.so.1)";
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  if (init == nullptr || count == nullptr || init(0) != 0 || count(&devices) != 0 || devices == 0)
    return "no GPU that this process may use";
  return {};
}

}  // namespace warmgate::engine
