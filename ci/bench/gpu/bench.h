// warmgate-bench: kernels of device cuda, timed. A case says what one call has to do at least
// (bytes each read or written once, FLOPs); the program prints its median time beside the ceilings
// measured in the same run.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/launch.h"

namespace warmgate::bench {

/// What a run measures of the machine itself before any case.
struct Ceilings {
  double copy_gb_s = 0;        // device to device, bytes read and written
  double row_gather_gb_s = 0;  // rows of 576 bytes by index, read and written
  double bf16_tflop_s = 0;     // 8192³ product, random data; 0: not observed
};

struct Measured {
  double median_us = 0, fastest_us = 0, slowest_us = 0;
  int repeats = 0;
};

/// One line of the table. `reference_us`, `must_us`, `aim_us`: 0 where there is none.
struct Result {
  std::string name;
  Measured time;
  double bytes = 0, flops = 0;  // of one call
  double reference_us = 0;      // what the peer named in `peer` needs, published or measured
  double must_us = 0, aim_us = 0;
  std::string peer, note;
};

class Bench {
 public:
  explicit Bench(bool quick) : quick_(quick) {}
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  /// Opens the device at the first call: what runs processes of its own is measured before that, as
  /// they would share the GPU with this one.
  const kernels::cuda::Launch& launch();
  /// Fewer repeats.
  bool quick() const { return quick_; }
  /// Time of one call: `call(set)` enqueues the work on input set `set` of 0..sets-1 on the
  /// launch's stream. All sets are captured into one graph, whose replays are timed with events and
  /// divided by `sets`; together the sets should exceed the L2.
  Measured time(int sets, const std::function<void(int)>& call);
  void add(Result result) { results_.push_back(std::move(result)); }
  const std::vector<Result>& results() const { return results_; }
  Ceilings ceilings;

 private:
  kernels::cuda::Launch launch_;
  bool quick_;
  std::vector<Result> results_;
};

struct Case {
  const char* name;
  void (*run)(Bench&);
};
/// By file.
std::vector<Case> ceiling_cases();
std::vector<Case> decode_cases();
std::vector<Case> prefill_cases();
std::vector<Case> indexer_cases();
std::vector<Case> cache_cases();
std::vector<Case> gemm_cases();
std::vector<Case> startup_cases();

/// Device memory for the length of a case; throws kernels::cuda::DeviceFault.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }
  void copy_from(const void* host, std::size_t bytes);
  /// Pseudo-random bits from a seed, as bf16 of -2..2 (no NaN), written by the device.
  void fill_bf16(std::uint64_t seed);
  /// Pseudo-random e4m3 codes without NaN.
  void fill_e4m3(std::uint64_t seed);

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace warmgate::bench
