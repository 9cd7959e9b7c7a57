// What the kernel bodies are written in, for the device: integers are int, constants are template
// arguments. The host's counterpart, with checked integers, is kernels/jit/host_prelude.h.
typedef int Int;
typedef long long Long;

#define WG_CONSTANTS(...) template <__VA_ARGS__>
#define WG_WITH(...) <__VA_ARGS__>
#define WG_KERNEL __global__ void
#define WG_DEVICE __device__ __forceinline__
#define WG_INTS_IN const int* __restrict__
#define WG_INTS_OUT int* __restrict__
#define WG_INTS_AT const int*
#define WG_THREAD static_cast<int>(threadIdx.x)
#define WG_THREADS static_cast<int>(blockDim.x)
#define WG_BLOCK_X static_cast<int>(blockIdx.x)
#define WG_BLOCK_Y static_cast<int>(blockIdx.y)
#define WG_GRID_Y static_cast<int>(gridDim.y)

WG_DEVICE int wg_min(int a, int b) { return a < b ? a : b; }
WG_DEVICE int wg_max(int a, int b) { return a > b ? a : b; }

/// An integer argument of a declared class: 1 (the value is one), 16 (a multiple of 16), 0 (any).
template <int CLASS>
WG_DEVICE int wg_classified(int value) {
  if constexpr (CLASS == 1) return 1;
  if constexpr (CLASS == 16) return value & ~15;
  return value;
}
#define WG_CLASSIFIED(CLASS, value) wg_classified<CLASS>(value)

/// Element i. An aligned pointer starts a 16-byte group and its buffer holds whole groups, so that
/// one wide load brings the group.
template <bool ALIGNED>
WG_DEVICE int wg_lookup(const int* p, int i) {
  if constexpr (ALIGNED) {
    const int4 group = reinterpret_cast<const int4*>(p)[i >> 2];
    const int low = (i & 1) ? group.y : group.x, high = (i & 1) ? group.w : group.z;
    return (i & 2) ? high : low;
  } else {
    return p[i];
  }
}
#define WG_LOOKUP(ALIGNED, p, i) wg_lookup<ALIGNED>(p, i)

struct Int4 {
  int x, y, z, w;
};
/// Elements i..i+3; i is a multiple of 4.
template <bool ALIGNED>
WG_DEVICE Int4 wg_load4(const int* p, int i) {
  if constexpr (ALIGNED) {
    const int4 v = *reinterpret_cast<const int4*>(p + i);
    return {v.x, v.y, v.z, v.w};
  } else {
    return {p[i], p[i + 1], p[i + 2], p[i + 3]};
  }
}
#define WG_LOAD4(ALIGNED, p, i) wg_load4<ALIGNED>(p, i)
