#include "kernels/cuda/runtime.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "kernels/cuda/basic/cublaslt.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

namespace {

// Kernels' scratch: partial sums of split attention, weights widened for a product.
constexpr std::size_t kScratchBytes = std::size_t{160} << 20;
// What the host reads at once in passing: ids, rows for a comparison.
constexpr std::size_t kStagingBytes = std::size_t{256} << 10;

class Device0 final : public Runtime {
 public:
  explicit Device0(int index) {
    check(cudaSetDevice(index), "cudaSetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    facts_.name = properties.name;
    const int arch = 10 * properties.major + properties.minor;
    // From Hopper on, code for one architecture alone may use all of it.
    facts_.architecture = "sm_" + std::to_string(arch) + (arch >= 90 ? "a" : "");
    facts_.multiprocessors = properties.multiProcessorCount;
    check(cudaDriverGetVersion(&facts_.driver_version), "cudaDriverGetVersion");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    facts_.total_bytes = static_cast<std::int64_t>(total);
    location_.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location_.id = index;
    prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop_.location = location_;
    std::size_t granularity = 0;
    check(driver().granularity(&granularity, &prop_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
    granularity_ = static_cast<std::int64_t>(granularity);
    Launch launch;
    launch.stream = stream_;
    launch.arch = arch;
    launch.multiprocessors = facts_.multiprocessors;
    launch.scratch_bytes = kScratchBytes;
    check(cudaMalloc(&scratch_, kScratchBytes), "cudaMalloc of kernels' scratch", kScratchBytes);
    check(cudaMallocHost(&staging_, kStagingBytes), "cudaMallocHost");
    launch.scratch = scratch_;
    kernels_.set_launch(launch);
  }
  ~Device0() override {
    for (const auto& [program, module] : modules_)
      if (module != nullptr) driver().module_unload(module);
    for (const auto& [id, exec] : graphs_) cudaGraphExecDestroy(exec);
    while (!mapped_.empty()) {
      const auto [address, piece] = *mapped_.begin();
      driver().unmap(address, static_cast<std::size_t>(piece.bytes));
      driver().release(piece.handle);
      mapped_.erase(mapped_.begin());
    }
    for (const auto& [address, bytes] : reserved_) driver().address_free(address, bytes);
    cudaFreeHost(staging_);
    cudaFree(scratch_);
    cudaStreamDestroy(stream_);
  }
  Device0(const Device0&) = delete;
  Device0& operator=(const Device0&) = delete;

  const Facts& facts() const override { return facts_; }
  std::int64_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(free);
  }
  std::int64_t granularity() const override { return granularity_; }

  std::uint64_t reserve(std::int64_t bytes) override {
    CUdeviceptr out = 0;
    check(driver().address_reserve(&out, static_cast<std::size_t>(bytes), 0, 0, 0),
          "cuMemAddressReserve");
    reserved_[out] = static_cast<std::size_t>(bytes);
    return out;
  }
  void release(std::uint64_t address, std::int64_t bytes) override {
    check(driver().address_free(address, static_cast<std::size_t>(bytes)), "cuMemAddressFree");
    reserved_.erase(address);
  }
  void map(std::uint64_t address, std::int64_t bytes) override {
    CUmemGenericAllocationHandle handle = 0;
    const auto size = static_cast<std::size_t>(bytes);
    check(driver().create(&handle, size, &prop_, 0), "cuMemCreate", bytes);
    if (const CUresult result = driver().map(address, size, 0, handle, 0); result != CUDA_SUCCESS) {
      driver().release(handle);
      check(result, "cuMemMap");
    }
    CUmemAccessDesc access{};
    access.location = location_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    mapped_[address] = {handle, bytes};
    check(driver().set_access(address, size, &access, 1), "cuMemSetAccess");
  }
  void unmap(std::uint64_t address, std::int64_t bytes) override {
    const auto it = mapped_.find(address);
    if (it == mapped_.end() || it->second.bytes != bytes)
      throw std::logic_error("unmap of what one map did not give");
    check(cudaStreamSynchronize(stream_), "kernels before memory is given back");
    check(driver().unmap(address, static_cast<std::size_t>(bytes)), "cuMemUnmap");
    check(driver().release(it->second.handle), "cuMemRelease");
    mapped_.erase(it);
  }

  void mute(bool muted) override { muted_ = muted; }
  void fill(std::uint64_t address, std::int64_t bytes, std::uint8_t value) override {
    if (bytes > 0 && !muted_)
      check(cudaMemsetAsync(pointer(address), value, static_cast<std::size_t>(bytes), stream_),
            "cudaMemset");
  }
  void write(std::uint64_t address, const void* from, std::int64_t bytes) override {
    if (bytes == 0) return;
    // From pageable memory: the runtime has copied it before it returns.
    check(cudaMemcpyAsync(pointer(address), from, static_cast<std::size_t>(bytes),
                          cudaMemcpyHostToDevice, stream_),
          "cudaMemcpy to the device");
  }
  void read(std::uint64_t address, void* to, std::int64_t bytes) override {
    if (bytes == 0) return;
    // Through pinned memory: a copy into memory that may be paged out costs twice the time.
    if (bytes <= static_cast<std::int64_t>(kStagingBytes)) {
      check(cudaMemcpyAsync(staging_, pointer(address), static_cast<std::size_t>(bytes),
                            cudaMemcpyDeviceToHost, stream_),
            "cudaMemcpy from the device");
      check(cudaStreamSynchronize(stream_), "cudaMemcpy from the device");
      std::memcpy(to, staging_, static_cast<std::size_t>(bytes));
      return;
    }
    check(cudaMemcpyAsync(to, pointer(address), static_cast<std::size_t>(bytes),
                          cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpy from the device");
    check(cudaStreamSynchronize(stream_), "cudaMemcpy from the device");
  }
  void gather(const Piece* pieces, std::size_t count, std::byte* to) override {
    auto* const staged = static_cast<std::byte*>(staging_);
    std::size_t filled = 0;
    const auto flush = [&] {
      if (filled == 0) return;
      check(cudaStreamSynchronize(stream_), "cudaMemcpy from the device");
      std::memcpy(to, staged, filled);
      to += filled;
      filled = 0;
    };
    for (std::size_t i = 0; i < count; ++i) {
      const auto bytes = static_cast<std::size_t>(pieces[i].bytes);
      if (filled + bytes > kStagingBytes) flush();
      if (bytes > kStagingBytes) {
        read(pieces[i].address, to, pieces[i].bytes);
        to += bytes;
      } else if (bytes > 0) {
        check(cudaMemcpyAsync(staged + filled, pointer(pieces[i].address), bytes,
                              cudaMemcpyDeviceToHost, stream_),
              "cudaMemcpy from the device");
        filled += bytes;
      }
    }
    flush();
  }
  void synchronize(const char* what) override { check(cudaStreamSynchronize(stream_), what); }

  void begin_capture() override {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "begin of a capture");
  }
  Graph end_capture() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "end of a capture");
    cudaGraphExec_t exec = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "cudaGraphInstantiate");
    graphs_[++last_graph_] = exec;
    return last_graph_;
  }
  void abandon_capture() override {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  void replay(Graph graph) override {
    check(cudaGraphLaunch(graphs_.at(graph), stream_), "cudaGraphLaunch");
  }
  void destroy(Graph graph) override {
    if (const auto it = graphs_.find(graph); it != graphs_.end()) {
      cudaGraphExecDestroy(it->second);
      graphs_.erase(it);
    }
  }

  Function load(const std::string& program, const std::string& cubin,
                const std::string& name) override {
    CUmodule& module = modules_[program];
    if (module == nullptr) check(driver().module_load(&module, cubin.data()), "cuModuleLoadData");
    CUfunction function = nullptr;
    if (!name.empty()) {
      check(driver().module_function(&function, module, name.c_str()), "cuModuleGetFunction");
    } else {
      if (driver().functions == nullptr)
        throw DeviceFault("cuModuleEnumerateFunctions", "not found", "needs a driver of CUDA 12.4");
      check(driver().functions(&function, 1, module), "cuModuleEnumerateFunctions");
    }
    return reinterpret_cast<Function>(function);
  }
  void launch(Function function, unsigned grid_x, unsigned grid_y, unsigned threads,
              std::vector<void*> arguments, const char* what) override {
    check(driver().launch(reinterpret_cast<CUfunction>(function), grid_x, grid_y, 1, threads, 1, 1,
                          0, stream_, arguments.data(), nullptr),
          what);
  }
  Kernels& kernels() override { return kernels_; }

 private:
  struct Mapping {
    CUmemGenericAllocationHandle handle = 0;
    std::int64_t bytes = 0;
  };
  static void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

  Facts facts_;
  cudaStream_t stream_ = nullptr;
  void* scratch_ = nullptr;
  bool muted_ = false;
  void* staging_ = nullptr;  // pinned, of the host
  CUmemLocation location_{};
  CUmemAllocationProp prop_{};
  std::int64_t granularity_ = 0;
  std::map<std::uint64_t, Mapping> mapped_;
  std::map<std::uint64_t, std::size_t> reserved_;
  std::map<Graph, cudaGraphExec_t> graphs_;
  Graph last_graph_ = 0;
  std::map<std::string, CUmodule> modules_;
  CudaKernels kernels_;
};

}  // namespace

}  // namespace warmgate::kernels::cuda

extern "C" __attribute__((visibility("default"))) warmgate::kernels::cuda::Runtime*
warmgate_cuda_open(int index, char* error, unsigned long size) {
  try {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
    if (index >= count)
      throw std::runtime_error("device " + std::to_string(index) + " of " + std::to_string(count));
    warmgate::kernels::cuda::open_cublaslt_early();
    return new warmgate::kernels::cuda::Device0(index);
  } catch (const std::exception& e) {
    if (size > 0) std::snprintf(error, size, "%s", e.what());
    return nullptr;
  }
}
