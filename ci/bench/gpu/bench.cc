#include "ci/bench/gpu/bench.h"

#include <algorithm>

namespace warmgate::bench {

using kernels::cuda::check;

const kernels::cuda::Launch& Bench::launch() {
  if (launch_.stream != nullptr) return launch_;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  launch_.arch = 10 * properties.major + properties.minor;
  launch_.multiprocessors = properties.multiProcessorCount;
  launch_.scratch_bytes = std::size_t{512} << 20;
  check(cudaMalloc(&launch_.scratch, launch_.scratch_bytes), "cudaMalloc");
  check(cudaStreamCreateWithFlags(&launch_.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return launch_;
}

Bench::~Bench() {
  if (launch_.stream == nullptr) return;
  cudaStreamDestroy(launch_.stream);
  cudaFree(launch_.scratch);
}

Measured Bench::time(int sets, const std::function<void(int)>& call) {
  cudaStream_t stream = launch().stream;
  call(0);  // attributes are set and errors come before anything is captured
  check(cudaStreamSynchronize(stream), "first call");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  for (int set = 0; set < sets; ++set) call(set);
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  const int warm = quick_ ? 2 : 5;
  const int repeats = quick_ ? 11 : 41;
  for (int i = 0; i < warm; ++i) check(cudaGraphLaunch(exec, stream), "replay");
  check(cudaStreamSynchronize(stream), "warm replays");
  std::vector<double> us;
  for (int i = 0; i < repeats; ++i) {
    check(cudaEventRecord(begin, stream), "event");
    check(cudaGraphLaunch(exec, stream), "replay");
    check(cudaEventRecord(end, stream), "event");
    check(cudaEventSynchronize(end), "replay");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "elapsed time");
    us.push_back(1000.0 * ms / sets);
  }
  std::sort(us.begin(), us.end());
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return {us[us.size() / 2], us.front(), us.back(), repeats};
}

Memory::Memory(std::size_t bytes) : bytes_(bytes) {
  check(cudaMalloc(&data_, bytes), "cudaMalloc");
}
Memory::~Memory() { cudaFree(data_); }

void Memory::copy_from(const void* host, std::size_t bytes) {
  check(cudaMemcpy(data_, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

}  // namespace warmgate::bench
