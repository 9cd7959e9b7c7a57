// The run-time compiled metadata kernels: on a GPU their object code, on the host their bodies with
// checked integers.
#include <algorithm>
#include <stdexcept>

#include "harness/engine/ops/jit_launch.h"
#include "harness/engine/ops/run_tensor.h"
#include "kernels/cuda/runtime.h"
#include "kernels/jit/host_kernels.h"

namespace warmgate::engine::ops {

using namespace glue;

namespace {

constexpr unsigned kThreads = 128;

jit::InBuffer in(const Tensor& t) {
  return {i32(t), t.elements(), static_cast<int>(t.address / 4 % 4)};
}
jit::OutBuffer out(const Tensor& t) { return {i32(t), t.elements()}; }
std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// Arguments of one launch, each kept until it was made.
class Arguments {
 public:
  Arguments& pointer(const Tensor& t) { return word(t.address); }
  Arguments& integer(std::int64_t value) { return word(static_cast<std::uint32_t>(narrow(value))); }
  std::vector<void*> pointers() {
    std::vector<void*> all;
    for (std::size_t i = 0; i < count_; ++i) all.push_back(&words_[i]);
    return all;
  }

 private:
  static constexpr std::size_t kMost = 16;
  Arguments& word(std::uint64_t value) {
    words_[count_++] = value;  // little-endian: an int is the low half
    return *this;
  }
  std::uint64_t words_[kMost] = {};
  std::size_t count_ = 0;
};

void launch(const JitKernel& kernel, unsigned grid_x, unsigned grid_y, Arguments& arguments,
            const Device& device) {
  device.gpu()->launch(kernel.function, grid_x, grid_y, kThreads, arguments.pointers(),
                       kernel.key.kernel.c_str());
}

// Workers only share out the tokens of a request.
std::int64_t workers(const CombineArguments& a) {
  return std::clamp<std::int64_t>(a.tokens / a.requests, 1, 128);
}
std::int64_t topk_stride(const CombineArguments& a) {
  return a.topk.rows() > 0 ? a.topk.strides[0] : 0;
}

}  // namespace

std::uint64_t load_kernel(const jit::Key& key, jit::Compiler& compiler, std::string_view arch,
                          jit::Mode mode, const Device& device) {
  if (device.gpu() == nullptr) return 0;
  const auto code = compiler.code(key, arch, mode);
  if (!code)
    throw std::runtime_error("device " + std::string(device.name()) + " has no object code for " +
                             key.text() + ": it needs NVRTC, kernels were compiled by " +
                             std::string(compiler.backend()));
  return device.gpu()->load(code->program, *code->cubin, code->function);
}

void run(const JitKernel& kernel, const ComputePrefillArguments& a, const Device& device) {
  if (kernel.function != 0) {
    Arguments arguments;
    arguments.pointer(a.gather_lens).pointer(a.query_start).pointer(a.seq_lens);
    arguments.integer(a.prefills).integer(a.decodes).integer(a.window);
    return launch(kernel, 1, 1, arguments, device);
  }
  jit::ComputePrefillLaunch launch{out(a.gather_lens), in(a.query_start), in(a.seq_lens)};
  launch.num_prefills = narrow(a.prefills);
  launch.num_decodes = narrow(a.decodes);
  launch.window = narrow(a.window);
  jit::run_on_host(kernel.key, launch);
}

void run(const JitKernel& kernel, const BuildChunkArguments& a, const Device& device) {
  if (kernel.function != 0) {
    Arguments arguments;
    arguments.pointer(a.key_starts).pointer(a.key_ends).pointer(a.key_requests);
    arguments.pointer(a.query_start).pointer(a.seq_lens);
    arguments.integer(a.slice_start).integer(a.slice_stop);
    return launch(kernel, static_cast<unsigned>(a.requests), 1, arguments, device);
  }
  jit::BuildChunkLaunch launch{out(a.key_starts), out(a.key_ends), out(a.key_requests),
                               in(a.query_start), in(a.seq_lens)};
  launch.query_slice_start = narrow(a.slice_start);
  launch.query_slice_stop = narrow(a.slice_stop);
  launch.num_requests = narrow(a.requests);
  jit::run_on_host(kernel.key, launch);
}

void run(const JitKernel& kernel, const CombineArguments& a, const Device& device) {
  if (kernel.function != 0) {
    Arguments arguments;
    arguments.pointer(a.indices).integer(a.indices.strides[0]).pointer(a.lens);
    arguments.pointer(a.topk).integer(topk_stride(a)).pointer(a.query_start);
    arguments.pointer(a.seq_lens).pointer(a.gather_lens);
    arguments.integer(a.rows).integer(a.compressed_rows);
    return launch(kernel, static_cast<unsigned>(a.requests), static_cast<unsigned>(workers(a)),
                  arguments, device);
  }
  jit::CombineLaunch launch{out(a.indices),    out(a.lens),    in(a.topk),
                            in(a.query_start), in(a.seq_lens), in(a.gather_lens)};
  launch.combined_stride = narrow(a.indices.strides[0]);
  launch.topk_stride = narrow(topk_stride(a));
  launch.M = narrow(a.rows);
  launch.N = narrow(a.compressed_rows);
  launch.num_requests = narrow(a.requests);
  launch.num_workers = narrow(workers(a));
  jit::run_on_host(kernel.key, launch);
}

}  // namespace warmgate::engine::ops
