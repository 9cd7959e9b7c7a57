// One start of a small CUDA program, measured from inside: what ci/bench/probe/cost compares with and
// without the probe. Prints one line of JSON.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double us(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void add(float* x, int n, float y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const auto start = Clock::now();
  check(cudaFree(nullptr), "context");
  std::size_t free_bytes = 0, total = 0;
  check(cudaMemGetInfo(&free_bytes, &total), "memory");
  const double context_ms = us(start) / 1e3;
  constexpr int kFloats = 1 << 20;
  float* x = nullptr;
  check(cudaMalloc(&x, kFloats * sizeof(float)), "allocation");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  for (int i = 0; i < 200; ++i) add<<<kFloats / 256, 256, 0, stream>>>(x, kFloats, 1);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture");
  for (int i = 0; i < 100; ++i) add<<<kFloats / 256, 256, 0, stream>>>(x, kFloats, 1);
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "graph");
  check(cudaGraphLaunch(exec, stream), "replay");
  check(cudaStreamSynchronize(stream), "wait");
  const double ready_ms = us(start) / 1e3;
  std::vector<double> replays, launches;
  for (int i = 0; i < 300; ++i) {
    const auto begin = Clock::now();
    check(cudaGraphLaunch(exec, stream), "replay");
    check(cudaStreamSynchronize(stream), "wait");
    replays.push_back(us(begin));
  }
  for (int i = 0; i < 200; ++i) {  // the call alone: few enough that the queue never fills
    const auto begin = Clock::now();
    for (int k = 0; k < 50; ++k) add<<<1, 32, 0, stream>>>(x, 1, 1);
    launches.push_back(us(begin) / 50);
    check(cudaStreamSynchronize(stream), "wait");
  }
  std::printf("{\"context_ms\": %.3f, \"ready_ms\": %.3f, \"free_bytes\": %zu, \"replay_us\": %.3f, "
              "\"launch_us\": %.4f}\n",
              context_ms, ready_ms, free_bytes, median(replays), median(launches));
}
