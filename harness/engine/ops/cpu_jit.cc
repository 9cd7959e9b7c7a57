// The run-time compiled metadata kernels on the host: their bodies with checked integers.
#include <algorithm>

#include "harness/engine/ops/cpu_tensor.h"
#include "harness/engine/ops/jit_launch.h"
#include "kernels/jit/host_kernels.h"

namespace warmgate::engine::ops {

using namespace host;

namespace {

jit::InBuffer in(const Tensor& t) {
  return {i32(t), t.elements(), static_cast<int>(t.address / 4 % 4)};
}
jit::OutBuffer out(const Tensor& t) { return {i32(t), t.elements()}; }
std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

}  // namespace

void run(const jit::Key& key, const ComputePrefillArguments& a, const Device& device) {
  need_host(key.kernel, device);
  jit::ComputePrefillLaunch launch{out(a.gather_lens), in(a.query_start), in(a.seq_lens)};
  launch.num_prefills = narrow(a.prefills);
  launch.num_decodes = narrow(a.decodes);
  launch.window = narrow(a.window);
  jit::run_on_host(key, launch);
}

void run(const jit::Key& key, const BuildChunkArguments& a, const Device& device) {
  need_host(key.kernel, device);
  jit::BuildChunkLaunch launch{out(a.key_starts), out(a.key_ends), out(a.key_requests),
                               in(a.query_start), in(a.seq_lens)};
  launch.query_slice_start = narrow(a.slice_start);
  launch.query_slice_stop = narrow(a.slice_stop);
  launch.num_requests = narrow(a.requests);
  jit::run_on_host(key, launch);
}

void run(const jit::Key& key, const CombineArguments& a, const Device& device) {
  need_host(key.kernel, device);
  jit::CombineLaunch launch{out(a.indices),    out(a.lens),    in(a.topk),
                            in(a.query_start), in(a.seq_lens), in(a.gather_lens)};
  launch.combined_stride = narrow(a.indices.strides[0]);
  launch.topk_stride = a.topk.rows() > 0 ? narrow(a.topk.strides[0]) : 0;
  launch.M = narrow(a.rows);
  launch.N = narrow(a.compressed_rows);
  launch.num_requests = narrow(a.requests);
  // Workers only share out the tokens of a request.
  launch.num_workers = narrow(std::clamp<std::int64_t>(a.tokens / a.requests, 1, 128));
  jit::run_on_host(key, launch);
}

}  // namespace warmgate::engine::ops
