// What this machine can do at best: the measure for all other cases of the run.
#include <fmt/format.h>

#include "ci/bench/gpu/bench.h"
#include "ci/bench/gpu/gather_ceiling.h"
#include "kernels/cuda/basic/gemm.h"

namespace warmgate::bench {
namespace {

using kernels::cuda::check;

// The faster of a copy kernel and the driver's copy: in a graph that one may be far slower.
void copy(Bench& bench) {
  constexpr std::size_t kBytes = std::size_t{2} << 30;
  Memory from(kBytes), to(kBytes);
  from.fill_bf16(1);
  cudaStream_t stream = bench.launch().stream;
  Result r;
  r.name = "ceiling: device copy, 2 GiB";
  r.bytes = 2.0 * kBytes;
  const Measured driver = bench.time(1, [&](int) {
    check(cudaMemcpyAsync(to.as<char>(), from.as<char>(), kBytes, cudaMemcpyDeviceToDevice, stream),
          "copy");
  });
  const Measured kernel =
      bench.time(1, [&](int) { copy_bytes(from.as<char>(), kBytes, to.as<char>(), stream); });
  r.time = kernel.median_us < driver.median_us ? kernel : driver;
  r.note = fmt::format("kernel {:.1f} us, cudaMemcpyAsync {:.1f} us", kernel.median_us,
                       driver.median_us);
  bench.ceilings.copy_gb_s = r.bytes / r.time.median_us * 1e-3;
  bench.add(r);
}

void gather(Bench& bench) {
  constexpr std::int64_t kRows = std::int64_t{1} << 20;
  constexpr std::size_t kBytes = std::size_t{576} << 20;
  Memory table(kBytes), out(kBytes), index(kRows * 4);
  table.fill_e4m3(2);
  fill_permutation(index.as<std::int32_t>(), kRows, 12345, bench.launch().stream);
  Result r;
  r.name = "ceiling: rows of 576 bytes by random index";
  r.bytes = 2.0 * kBytes + 4.0 * kRows;
  r.time = bench.time(1, [&](int) {
    gather_rows(table.as<char>(), index.as<std::int32_t>(), kRows, out.as<char>(),
                bench.launch().stream);
  });
  bench.ceilings.row_gather_gb_s = r.bytes / r.time.median_us * 1e-3;
  bench.add(r);
}

void product(Bench& bench) {
  constexpr std::int64_t kSide = 8192;
  Memory x(kSide * kSide * 2), w(kSide * kSide * 2), y(kSide * kSide * 2);
  x.fill_bf16(3);
  w.fill_bf16(4);
  kernels::cpu::Gemm g;
  g.tokens = kSide;
  g.x = x.as<kernels::cpu::Bf16>();
  g.w = {kernels::cpu::WeightType::kBf16, w.as<void>(), nullptr, kSide, kSide};
  g.y = y.as<void>();
  Result r;
  r.name = "ceiling: bf16 product 8192^3, random data";
  r.flops = 2.0 * kSide * kSide * kSide;
  r.note = kernels::cuda::gemm_note();
  if (r.note.rfind("cuBLASLt", 0) != 0) throw std::runtime_error(r.note);
  r.time = bench.time(1, [&](int) { kernels::cuda::run(g, bench.launch()); });
  bench.ceilings.bf16_tflop_s = r.flops / r.time.median_us * 1e-6;
  bench.add(r);
}

void ceilings(Bench& bench) {
  copy(bench);
  gather(bench);
  product(bench);
}

}  // namespace

std::vector<Case> ceiling_cases() { return {{"ceilings", ceilings}}; }

}  // namespace warmgate::bench
