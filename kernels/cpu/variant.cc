#include "kernels/cpu/variant.h"

#include <atomic>

namespace warmgate::kernels::cpu {

namespace {

Variant best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return Variant::kAvx2;
#endif
  return Variant::kBaseline;
}
std::atomic<Variant>& chosen() {
  static std::atomic<Variant> v = best();
  return v;
}

}  // namespace

Variant variant() { return chosen().load(std::memory_order_relaxed); }

void force_variant(Variant v) {
  if (v == Variant::kBaseline || best() == v) chosen().store(v, std::memory_order_relaxed);
}

}  // namespace warmgate::kernels::cpu
