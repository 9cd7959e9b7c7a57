// Warmed keys launched once where their code runs, on inputs of the host.
#include <algorithm>
#include <span>

#include "harness/engine/ops/jit_launch.h"
#include "kernels/cuda/fault.h"
#include "kernels/cuda/runtime.h"
#include "kernels/jit/host_kernels.h"

namespace warmgate::engine::ops {

namespace {

namespace cuda = kernels::cuda;

/// Memory for one launch. Broken code counts far: what lies behind the buffers is mapped too, so
/// that an index out of range is a wrong result of this key and not the end of the process.
class Arena {
 public:
  explicit Arena(cuda::Runtime& gpu) : gpu_(gpu) {
    address_ = gpu.reserve(kBytes);
    gpu.map(address_, kBytes);
    next_ = address_ + kBytes / 4;
  }
  ~Arena() {
    try {
      gpu_.unmap(address_, kBytes);
      gpu_.release(address_, kBytes);
    } catch (const std::exception&) {
      // The device failed; the process can only end.
    }
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `phase`: elements past a 16-byte boundary. Whole groups of 16 bytes follow.
  Tensor put(const std::int32_t* from, std::int64_t count, int phase) {
    constexpr std::uint64_t kUnit = 256;
    const std::uint64_t at = next_ + static_cast<std::uint64_t>(4 * phase);
    gpu_.write(at, from, 4 * count);
    next_ += (static_cast<std::uint64_t>(4 * (count + 8)) + kUnit - 1) / kUnit * kUnit;
    return make_tensor(DType::kI32, {count}, at);
  }
  Tensor in(const jit::InBuffer& b) { return put(b.data, b.size, b.phase); }
  Tensor out(const jit::OutBuffer& b) {
    const Tensor t = put(b.data, b.size, 0);
    outputs_.push_back({t.address, b});
    return t;
  }
  void read_back(const char* kernel) {
    gpu_.synchronize(kernel);
    for (const auto& [address, buffer] : outputs_) gpu_.read(address, buffer.data, 4 * buffer.size);
  }

 private:
  static constexpr std::int64_t kBytes = std::int64_t{512} << 20;
  cuda::Runtime& gpu_;
  std::uint64_t address_ = 0, next_ = 0;
  std::vector<std::pair<std::uint64_t, jit::OutBuffer>> outputs_;
};

class OnDevice final : public jit::Launcher {
 public:
  OnDevice(const JitKernel& kernel, const Device& device) : kernel_(kernel), device_(device) {}

  void run(const jit::Key&, const jit::ComputePrefillLaunch& l) override {
    guarded([&](Arena& arena) {
      ComputePrefillArguments a;
      a.gather_lens = arena.out(l.gather_lens);
      a.query_start = arena.in(l.query_start_loc);
      a.seq_lens = arena.in(l.seq_lens);
      a.prefills = l.num_prefills, a.decodes = l.num_decodes, a.window = l.window;
      ops::run(kernel_, a, device_);
    });
  }
  void run(const jit::Key&, const jit::BuildChunkLaunch& l) override {
    guarded([&](Arena& arena) {
      BuildChunkArguments a;
      a.key_starts = arena.out(l.key_starts);
      a.key_ends = arena.out(l.key_ends);
      a.key_requests = arena.out(l.key_requests);
      a.query_start = arena.in(l.query_start_loc);
      a.seq_lens = arena.in(l.uncompressed_seq_lens);
      a.slice_start = l.query_slice_start, a.slice_stop = l.query_slice_stop;
      a.requests = l.num_requests;
      ops::run(kernel_, a, device_);
    });
  }
  void run(const jit::Key&, const jit::CombineLaunch& l) override {
    guarded([&](Arena& arena) {
      CombineArguments a;
      a.indices = arena.out(l.combined_indices);
      a.indices.strides[0] = l.combined_stride;
      a.lens = arena.out(l.combined_lens);
      a.topk = arena.in(l.topk_indices);
      a.topk.strides[0] = l.topk_stride;
      a.query_start = arena.in(l.query_start_loc);
      a.seq_lens = arena.in(l.seq_lens);
      a.gather_lens = arena.in(l.gather_lens);
      a.rows = l.M, a.compressed_rows = l.N, a.requests = l.num_requests;
      a.tokens = l.combined_lens.size;
      ops::run(kernel_, a, device_);
    });
  }

 private:
  template <class Work>
  void guarded(Work work) {
    try {
      Arena arena(*device_.gpu());
      work(arena);
      arena.read_back(kernel_.key.kernel.c_str());
    } catch (const cuda::DeviceFault& fault) {
      throw jit::KernelFault("device_fault", fault.what(), std::source_location::current());
    }
  }
  const JitKernel& kernel_;
  const Device& device_;
};

}  // namespace

jit::HostCheck probe(const JitKernel& kernel, const Device& device) {
  if (kernel.function == 0) return jit::check_on_host(kernel.key);
  OnDevice launcher(kernel, device);
  return jit::check_with(launcher, kernel.key);
}

}  // namespace warmgate::engine::ops
