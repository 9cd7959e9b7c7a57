// What tests and benchmarks of this folder need: a device or a reason to skip, memory on it with
// poison around, and a Launch. Header-only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// "" if this process can use a GPU, else why not.
inline std::string no_gpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count > 0 ? "" : "no CUDA device";
}

/// Device memory with 256 bytes of poison before and behind; filled with poison (0xFF: NaN as bf16,
/// fp32 and e4m3, -1 as an index) until something is written.
template <class T>
class DeviceArray {
 public:
  static constexpr std::size_t kGuard = 256;
  static constexpr int kPoison = 0xFF;
  explicit DeviceArray(std::int64_t count) : count_(static_cast<std::size_t>(count)) {
    check(cudaMalloc(reinterpret_cast<void**>(&base_), bytes() + 2 * kGuard), "cudaMalloc");
    poison();
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(static_cast<std::int64_t>(values.size())) {
    write(values);
  }
  ~DeviceArray() { cudaFree(base_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return reinterpret_cast<T*>(base_ + kGuard); }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void poison() { check(cudaMemset(base_, kPoison, bytes() + 2 * kGuard), "cudaMemset"); }
  void write(const std::vector<T>& values) {
    check(cudaMemcpy(data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  /// Waits for the device.
  std::vector<T> read() const {
    std::vector<T> out(count_);
    check(cudaDeviceSynchronize(), "kernels before a read");
    check(cudaMemcpy(out.data(), data(), bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }
  /// Guard bytes that somebody wrote.
  std::int64_t overrun() const {
    std::vector<unsigned char> all(bytes() + 2 * kGuard);
    check(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::int64_t out = 0;
    for (std::size_t i = 0; i < kGuard; ++i)
      out += (all[i] != kPoison) + (all[kGuard + bytes() + i] != kPoison);
    return out;
  }

 private:
  std::size_t count_;
  unsigned char* base_ = nullptr;
};

/// A stream's worth of Launch on device 0 with scratch memory of its own.
class TestLaunch {
 public:
  explicit TestLaunch(std::size_t scratch_bytes = std::size_t{256} << 20) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    launch_.arch = 10 * properties.major + properties.minor;
    launch_.multiprocessors = properties.multiProcessorCount;
    launch_.scratch_bytes = scratch_bytes;
    check(cudaMalloc(&launch_.scratch, scratch_bytes), "cudaMalloc");
    check(cudaMemset(launch_.scratch, 0xFF, scratch_bytes), "cudaMemset");
    check(cudaStreamCreate(&launch_.stream), "cudaStreamCreate");
  }
  ~TestLaunch() {
    cudaStreamDestroy(launch_.stream);
    cudaFree(launch_.scratch);
  }
  TestLaunch(const TestLaunch&) = delete;
  TestLaunch& operator=(const TestLaunch&) = delete;
  const Launch& get() const { return launch_; }

 private:
  Launch launch_;
};

}  // namespace warmgate::kernels::cuda
