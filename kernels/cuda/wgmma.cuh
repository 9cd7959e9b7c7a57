// Warpgroup matrix products of Hopper (wgmma): D[64,N] (+)= A[64,K]·B[N,K]ᵀ, fp32 sums. B always
// from shared memory, A from there or from registers. Kernels that use these must be built for
// sm_90a and guard their bodies with __CUDA_ARCH_FEAT_SM90_ALL.
// Origin: PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions" (matrix descriptor,
// swizzling modes, register fragments).
//
// Registers of thread t (warp w of the warpgroup, g = t%32/4, c = t%4):
//   D: d[4j+0..1] row 16w+g, columns 8j+2c..+1; d[4j+2..3] row 16w+g+8, the same columns.
//   A (bf16, K=16): a[0] row 16w+g, k 2c..+1; a[1] 8 rows on, same k; a[2], a[3] same rows, k+8.
//   A (e4m3, K=32): the same with k 4c..+3 and k+16.
// So D of one product, packed to bf16 pairs, is A of the next: columns 16i.. give a[0..3] =
// pack(d[8i],d[8i+1]), pack(d[8i+2],d[8i+3]), pack(d[8i+4],d[8i+5]), pack(d[8i+6],d[8i+7]).
#pragma once

#include <stdint.h>

namespace warmgate::kernels::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// Where byte `offset` of a tile of 128-byte rows lies under the 128-byte swizzle: the 16-byte
/// column is exclusive-ored with the row modulo 8. The tile begins at a multiple of 1024 bytes.
__host__ __device__ constexpr uint32_t swizzle_128(uint32_t offset) {
  return offset ^ ((offset >> 3) & 0x70u);
}

namespace detail {
constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
__device__ __forceinline__ uint64_t descriptor(const void* tile, uint32_t leading,
                                               uint32_t stride) {
  return kSwizzle128 | ((shared_address(tile) & 0x3FFFFu) >> 4) |
         static_cast<uint64_t>(leading >> 4) << 16 | static_cast<uint64_t>(stride >> 4) << 32;
}
}  // namespace detail

/// A tile [rows, 128 bytes of k], 128-byte swizzled: row r at r·128. `tile` + 1024-byte alignment;
/// each next K (16 bf16 or 32 e4m3) is 32 bytes further (advance()); further 128-byte columns of k
/// are tiles of their own.
__device__ __forceinline__ uint64_t k_major(const void* tile) {
  return detail::descriptor(tile, 16, 1024);
}
/// bf16 only, for Transposed::kYes. Tiles [k rows, 64 columns of n (128 bytes)], swizzled, with
/// `tile_stride` bytes from one 64 columns to the next; each next K = 16 rows is 2048 bytes on.
__device__ __forceinline__ uint64_t mn_major(const void* tile, uint32_t tile_stride) {
  return detail::descriptor(tile, tile_stride, 1024);
}
__device__ __forceinline__ uint64_t advance(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// Before the first product of a series, and after anything else touched accumulators or A's
/// registers.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Closes the series started so far as one group.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `kPending` groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving uses of accumulators across a fence or wait.
template <int kCount>
__device__ __forceinline__ void hold(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void hold(uint32_t (&a)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

/// kNo: B's rows are n and lie along k (k_major); kYes: its rows are k and lie along n (mn_major).
enum class Transposed { kNo = 0, kYes = 1 };

// clang-format off
#define WG_F8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WG_F32(d, i) WG_F8(d, i), WG_F8(d, i + 8), WG_F8(d, i + 16), WG_F8(d, i + 24)

#define WG_D64 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31"
#define WG_D128 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45," \
  "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WG_D256 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45," \
  "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67," \
  "%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89," \
  "%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108," \
  "%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125," \
  "%126,%127"
#define WG_OUT64 WG_F32(d, 0)
#define WG_OUT128 WG_F32(d, 0), WG_F32(d, 32)
#define WG_OUT256 WG_F32(d, 0), WG_F32(d, 32), WG_F32(d, 64), WG_F32(d, 96)

// P, A, B: the numbers of the operands behind the accumulators.
#define WG_PRODUCT(N, SHAPE, A, B, P, TAIL, ...) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" #N SHAPE " {" WG_D##N "}, " A ", %" B \
               ", p, 1, 1" TAIL ";\n}\n" : WG_OUT##N : __VA_ARGS__)
#define WG_BF16 "k16.f32.bf16.bf16"
#define WG_E4M3 "k32.f32.e4m3.e4m3"

// D [64,N] += A·B, or = where `add` is false.
#define WG_FUNCTIONS(N, A0, A1, A2, A3, A4, A5, A6) \
  template <Transposed kB = Transposed::kNo> \
  __device__ __forceinline__ void \
  wgmma_bf16(float (&d)[N / 2], uint64_t a, uint64_t b, bool add) { \
    WG_PRODUCT(N, WG_BF16, "%" A0, A1, A2, ", 0, %" A3, "l"(a), "l"(b), "r"(int{add}), \
               "n"(static_cast<int>(kB))); \
  } \
  template <Transposed kB = Transposed::kNo> \
  __device__ __forceinline__ void \
  wgmma_bf16(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, \
                                             bool add) { \
    WG_PRODUCT(N, WG_BF16, "{%" A0 ",%" A1 ",%" A2 ",%" A3 "}", A4, A5, ", %" A6, "r"(a[0]), \
               "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{add}), \
               "n"(static_cast<int>(kB))); \
  } \
  __device__ __forceinline__ void \
  wgmma_e4m3(float (&d)[N / 2], uint64_t a, uint64_t b, bool add) { \
    WG_PRODUCT(N, WG_E4M3, "%" A0, A1, A2, "", "l"(a), "l"(b), "r"(int{add})); \
  } \
  __device__ __forceinline__ void \
  wgmma_e4m3(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, \
                                             bool add) { \
    WG_PRODUCT(N, WG_E4M3, "{%" A0 ",%" A1 ",%" A2 ",%" A3 "}", A4, A5, "", "r"(a[0]), "r"(a[1]), \
               "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{add})); \
  }
WG_FUNCTIONS(64, "32", "33", "34", "35", "36", "37", "38")
WG_FUNCTIONS(128, "64", "65", "66", "67", "68", "69", "70")
WG_FUNCTIONS(256, "128", "129", "130", "131", "132", "133", "134")

#undef WG_FUNCTIONS
#undef WG_E4M3
#undef WG_BF16
#undef WG_PRODUCT
#undef WG_OUT64
#undef WG_OUT128
#undef WG_OUT256
#undef WG_D64
#undef WG_D128
#undef WG_D256
#undef WG_F32
#undef WG_F8
// clang-format on

}  // namespace warmgate::kernels::cuda
