// The table of kernels/numerics, measured on a GPU: the same cases, the same oracles.
//   build/bin/numerics_table_cuda [--seed N] [--only TEXT]
// Exit code 1 if a row is beyond its limit, 3 without a GPU.
//
// The cases hold their inputs and outputs in ordinary vectors. Here new gives memory of the host
// that the GPU reaches under the same address, so that kernels read and write them in place.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/cuda/basic/gemm.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/test_device.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"

namespace {

/// Blocks of powers of two, cut from one allocation; a freed block goes to the list of its size.
class Arena {
 public:
  /// cudaSuccess, or why there is none.
  cudaError_t open(std::size_t bytes) {
    void* base = nullptr;
    const cudaError_t error =
        cudaHostAlloc(&base, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess) return error;
    base_ = next_ = static_cast<char*>(base);
    end_ = base_ + bytes;
    return cudaSuccess;
  }
  bool has(const void* p) const { return p >= base_ && p < end_ && base_ != nullptr; }
  void* take(std::size_t bytes) {
    if (base_ == nullptr) return nullptr;
    const Held held(busy_);
    std::size_t size = kHead;
    int order = 0;
    while (size < bytes + kHead + sizeof(char*)) size *= 2, ++order;
    char* block = free_[order];
    if (block != nullptr) {
      std::memcpy(&free_[order], block + kHead, sizeof free_[order]);
    } else {
      if (static_cast<std::size_t>(end_ - next_) < size) return nullptr;
      block = next_;
      next_ += size;
      std::memcpy(block, &order, sizeof order);
    }
    return block + kHead;
  }
  void give(void* p) {
    const Held held(busy_);
    char* block = static_cast<char*>(p) - kHead;
    int order = 0;
    std::memcpy(&order, block, sizeof order);
    std::memcpy(block + kHead, &free_[order], sizeof free_[order]);
    free_[order] = block;
  }

 private:
  static constexpr std::size_t kHead = 256;  // keeps what is handed out aligned, too
  struct Held {
    explicit Held(std::atomic_flag& flag_in) : flag(flag_in) {
      while (flag.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Held() { flag.clear(std::memory_order_release); }
    std::atomic_flag& flag;
  };
  char *base_ = nullptr, *next_ = nullptr, *end_ = nullptr;
  char* free_[48] = {};
  std::atomic_flag busy_;
};

constinit Arena arena;

void* allocate(std::size_t bytes) {
  if (void* p = arena.take(bytes)) return p;
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void release(void* p) { arena.has(p) ? arena.give(p) : std::free(p); }

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }

int main(int argc, char** argv) {
  using namespace warmgate::numerics;
  namespace cuda = warmgate::kernels::cuda;
  std::uint64_t seed = fresh_seed();
  const char* only = "";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: numerics_table_cuda [--seed N] [--only TEXT]\n");
      return 2;
    }
  }
  if (const std::string why = cuda::no_gpu(); !why.empty()) {
    std::fprintf(stderr, "numerics_table_cuda: nothing measured, no GPU: %s\n", why.c_str());
    return 3;
  }
  const cuda::TestLaunch launch;
  cuda::CudaKernels kernels(launch.get());
  cuda::check(arena.open(std::size_t{3} << 30), "cudaHostAlloc");
  measure_on(kernels);
  std::printf("inputs of seed %llu; products: %s\n", static_cast<unsigned long long>(seed),
              cuda::gemm_note().c_str());
  Table table;
  bool failed = false;
  for (const Case& c : cases()) {
    if (c.of_host || std::strstr(c.name, only) == nullptr) continue;
    Random random(seed, c.name);
    try {
      c.measure(random, table);
    } catch (const warmgate::kernels::CannotRun& e) {
      std::printf("%-40s not measured: %s\n", c.name, e.what());
      failed = true;
    } catch (const std::exception& e) {
      // A fault of the device: nothing can be measured after it.
      std::printf("%-40s failed: %s\n", c.name, e.what());
      failed = true;
      break;
    }
  }
  table.print(stdout);
  for (const Row& row : table.rows()) failed = failed || !row.right();
  std::fflush(stdout);
  // Vectors of static duration may outlive the device's context: leave without taking them apart.
  std::_Exit(failed ? 1 : 0);
}
