// Kernels are compiled twice on x86-64: for the baseline and for AVX2. Both give the same bits, as
// the order of every sum is written out in lanes (lanes.h), nothing is contracted into fused
// multiply-adds (-ffp-contract=off) and nothing is reassociated.
#pragma once

#include <cstdint>

namespace warmgate::kernels::cpu {

enum class Variant : std::uint8_t { kBaseline, kAvx2 };

/// The best that this processor runs, unless force_variant() chose.
Variant variant();
/// For tests and benchmarks. A variant that the processor lacks is ignored.
void force_variant(Variant v);

}  // namespace warmgate::kernels::cpu

// WG_CPU_VARIANTS(gemm, Gemm) defines void gemm(const Gemm&) over an always-inlined gemm_body.
#if defined(__x86_64__)
#define WG_CPU_VARIANTS(function, Params)                                                      \
  static void function##_baseline(const Params& p) { function##_body(p); }                     \
  [[gnu::target("avx2")]] static void function##_avx2(const Params& p) { function##_body(p); } \
  void function(const Params& p) {                                                             \
    variant() == Variant::kAvx2 ? function##_avx2(p) : function##_baseline(p);                 \
  }
#else
#define WG_CPU_VARIANTS(function, Params) \
  void function(const Params& p) { function##_body(p); }
#endif
