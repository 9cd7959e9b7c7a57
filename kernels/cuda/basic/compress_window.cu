// A block takes a run of tokens and pools those that end a window. Four channels a thread; the rows
// of a window come in batches whose loads are all in flight at once, with a running maximum. Long
// windows are shared out among groups of threads that are merged at the end.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/compressor.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kMostRows = 256, kMostTokens = 32;

struct Four {
  float x[4];
};
__device__ __forceinline__ Four four_at(const float* p) {
  const float4 v = __ldcs(reinterpret_cast<const float4*>(p));
  return {v.x, v.y, v.z, v.w};
}

// Sums of e^(score - top) and of that times kv.
struct Pool {
  Four top, sum, out;
};
__device__ __forceinline__ void merge(Pool& a, const Pool& b) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const float top = fmaxf(a.top.x[c], b.top.x[c]);
    const float wa = expf(a.top.x[c] - top), wb = expf(b.top.x[c] - top);
    // A group without rows has top -inf, sums 0: it weighs nothing.
    a.sum.x[c] = a.sum.x[c] * wa + b.sum.x[c] * wb;
    a.out.x[c] = a.out.x[c] * wa + b.out.x[c] * wb;
    a.top.x[c] = top;
  }
}

template <int kBatch>
__device__ __forceinline__ void add_rows(Pool& pool, const float* const* rows, int count, int width,
                                         int channel) {
  Four score[kBatch], kv[kBatch];
#pragma unroll
  for (int r = 0; r < kBatch; ++r) {
    if (r >= count) continue;
    score[r] = four_at(rows[r] + width + channel);
    kv[r] = four_at(rows[r] + channel);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    float top = pool.top.x[c];
#pragma unroll
    for (int r = 0; r < kBatch; ++r)
      if (r < count) top = fmaxf(top, score[r].x[c]);
    const float before = expf(pool.top.x[c] - top);
    float sum = pool.sum.x[c] * before, out = pool.out.x[c] * before;
#pragma unroll
    for (int r = 0; r < kBatch; ++r) {
      if (r >= count) break;
      const float e = expf(score[r].x[c] - top);
      sum += e;
      out += e * kv[r].x[c];
    }
    pool.top.x[c] = top, pool.sum.x[c] = sum, pool.out.x[c] = out;
  }
}

__device__ __forceinline__ uint32_t magnitude(const Four& v) {
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t a = __float_as_uint(v.x[i]) & 0x7FFFFFFFu;
    largest = max(largest, a > 0x7F800000u ? 0u : a);
  }
  return largest;
}
__device__ __forceinline__ uint32_t quantise(const Four& v, float inverse) {
  return to_e4m3x2(v.x[0] * inverse, v.x[1] * inverse) |
         static_cast<uint32_t>(to_e4m3x2(v.x[2] * inverse, v.x[3] * inverse)) << 16;
}

// kernels/cpu's to_e2m1.
__device__ __forceinline__ uint32_t to_e2m1(float value) {
  const float a = fabsf(value);
  uint32_t code = 7;
  code = a <= 5.0f ? 6 : code;
  code = a < 3.5f ? 5 : code;
  code = a <= 2.5f ? 4 : code;
  code = a < 1.75f ? 3 : code;
  code = a <= 1.25f ? 2 : code;
  code = a < 0.75f ? 1 : code;
  code = a <= 0.25f ? 0 : code;
  return code | (value == value ? __float_as_uint(value) >> 31 << 3 : 0u);
}

// The entry as thread `part` holds it: channels 4·part … of dim, rounded to bf16.
__device__ void store_ds_mla(const cpu::CompressWindow& p, int64_t slot, const Four& v, int part) {
  const PageRow row = ds_mla_row(p.cache, slot);
  const uint32_t byte = e4m3_scale_byte(largest_of<16>(magnitude(v)), kFloor1e4);
  if (part < 112) {
    reinterpret_cast<uint32_t*>(row.data)[part] = quantise(v, inverse_scale(byte));
  } else {
    reinterpret_cast<uint2*>(row.data + cpu::kNopeDim)[part - 112] = {narrow2(v.x[0], v.x[1]),
                                                                      narrow2(v.x[2], v.x[3])};
  }
  if (part % 16 == 0) row.scales[part / 16] = part < 112 ? static_cast<uint8_t>(byte) : 0;
}
__device__ void store_indexer(const cpu::CompressWindow& p, int64_t slot, const Four& v, int part) {
  const bool fp8 = p.format == cpu::EntryFormat::kIndexerFp8;
  const uint32_t rows = static_cast<uint32_t>(p.cache.rows), s = static_cast<uint32_t>(slot);
  const int64_t row = s % rows, bytes = fp8 ? 128 : 64;
  uint8_t* page = p.cache.base + s / rows * p.cache.stride;
  uint8_t* values = page + row * bytes;
  uint8_t* scale = page + rows * bytes + row * 4;
  if (fp8) {
    const uint32_t byte = e4m3_scale_byte(largest_of<32>(magnitude(v)), kFloor1e4);
    reinterpret_cast<uint32_t*>(values)[part] = quantise(v, inverse_scale(byte));
    if (part == 0) *reinterpret_cast<float*>(scale) = ue8m0_to_float(byte);
    return;
  }
  const uint32_t byte = e2m1_scale_byte(largest_of<8>(magnitude(v)));
  const float inverse = inverse_scale(byte);
  uint32_t nibbles = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) nibbles |= to_e2m1(v.x[i] * inverse) << 4 * i;
  reinterpret_cast<uint16_t*>(values)[part] = static_cast<uint16_t>(nibbles);
  if (part % 8 == 0) scale[part / 8] = static_cast<uint8_t>(byte);
}

// Sum over the threads of one entry.
template <int kParts>
__device__ __forceinline__ float sum_of_parts(float value) {
  value = sum_of<32>(value);
  if constexpr (kParts > 32) {
    __shared__ float sums[kParts / 32];
    if (threadIdx.x % 32 == 0 && threadIdx.x < kParts) sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int w = 0; w < kParts / 32; ++w) value += sums[w];
  }
  return value;
}

template <int kDim, int kGroups, int kBatch, int kBlocks>
__global__ void __launch_bounds__(kDim / 4 * kGroups, kBlocks)
    compress_kernel(cpu::CompressWindow p, int tokens_a_block) {
  constexpr int kParts = kDim / 4;
  __shared__ const float* rows[kMostRows];
  __shared__ Pool pools[kGroups > 1 ? (kGroups - 1) * kParts : 1];
  __shared__ uint32_t ends_of_block;
  const int part = threadIdx.x % kParts, group = threadIdx.x / kParts;
  const int64_t first_token = static_cast<int64_t>(blockIdx.x) * tokens_a_block;
  const uint32_t ratio = static_cast<uint32_t>(p.ratio);
  if (threadIdx.x < 32) {
    const int64_t t = first_token + threadIdx.x;
    const bool ends = static_cast<int>(threadIdx.x) < tokens_a_block && t < p.tokens &&
                      p.slots[t] >= 0 && (static_cast<uint32_t>(p.positions[t]) + 1) % ratio == 0;
    const uint32_t mask = __ballot_sync(kWholeWarp, ends);
    if (threadIdx.x == 0) ends_of_block = mask;
  }
  __syncthreads();
  const int window = static_cast<int>((1 + p.overlap) * p.ratio);
  const int width = static_cast<int>((1 + p.overlap) * p.dim);
  for (uint32_t ends = ends_of_block; ends != 0; ends &= ends - 1) {
    const int64_t t = first_token + __ffs(ends) - 1, position = p.positions[t];
    const int64_t before = position - window + 1;
    const int skipped = before < 0 ? static_cast<int>(-before) : 0, count = window - skipped;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      const int row = skipped + i;
      const uint32_t slot = static_cast<uint32_t>(
          slot_of(p.state_table, p.token_to_req[t], static_cast<uint32_t>(before + row)));
      const uint32_t page = slot / static_cast<uint32_t>(p.state.rows);
      rows[i] = reinterpret_cast<const float*>(p.state.base + page * p.state.stride) +
                (slot - page * p.state.rows) * 2 * width + (row >= p.ratio ? p.dim : 0);
    }
    __syncthreads();
    Pool pool;
#pragma unroll
    for (int c = 0; c < 4; ++c) pool.top.x[c] = -INFINITY, pool.sum.x[c] = 0, pool.out.x[c] = 0;
    for (int r = group * kBatch; r < count; r += kGroups * kBatch)
      add_rows<kBatch>(pool, rows + r, min(count - r, kBatch), width, 4 * part);
    if constexpr (kGroups > 1) {
      if (group > 0) pools[(group - 1) * kParts + part] = pool;
      __syncthreads();
      if (group == 0) {
        for (int g = 1; g < kGroups; ++g) merge(pool, pools[(g - 1) * kParts + part]);
      }
    }
    Four v;
    float squares = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      v.x[c] = __fdiv_rn(pool.out.x[c], pool.sum.x[c]);
      squares += v.x[c] * v.x[c];
    }
    squares = sum_of_parts<kParts>(squares);
    if (group == 0) {
      const float factor = __fdiv_rn(1.0f, __fsqrt_rn(squares / kDim + p.eps));
#pragma unroll
      for (int c = 0; c < 4; ++c)
        v.x[c] = v.x[c] * factor * bf16_to_float(__ldg(p.norm + 4 * part + c));
      if (part >= kParts - 16) {
        const float* angles =
            p.cos_sin + position / p.ratio * p.ratio * 64 + 2 * (part - kParts + 16);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float e = v.x[2 * i], o = v.x[2 * i + 1], c = angles[i], s = angles[32 + i];
          v.x[2 * i] = __fsub_rn(__fmul_rn(e, c), __fmul_rn(o, s));
          v.x[2 * i + 1] = __fadd_rn(__fmul_rn(o, c), __fmul_rn(e, s));
        }
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) v.x[c] = round_to_bf16(v.x[c]);
      if constexpr (kDim == 512) {
        store_ds_mla(p, p.slots[t], v, part);
      } else {
        store_indexer(p, p.slots[t], v, part);
      }
    }
    __syncthreads();  // rows and sums are used again
  }
}

}  // namespace

Reason can_run(const cpu::CompressWindow& p, const Launch&) {
  const bool ds_mla = p.format == cpu::EntryFormat::kDsMla;
  return first_of(
      refuse(p.dim != (ds_mla ? 512 : 128), "compressor: dim is neither 512 (ds_mla) nor 128"),
      refuse((1 + p.overlap) * p.ratio > kMostRows, "compressor: a window of more than 256 rows"),
      refuse(!aligned(p.state), "compressor: state pages are not 16-byte aligned"),
      refuse(!aligned(p.cache), "compressor: cache pages are not 16-byte aligned"));
}
void run(const cpu::CompressWindow& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  // A block takes about two windows: fewer blocks end together in a last, half-empty wave, more of
  // them find nothing to do. Few tokens: one a block.
  const int tokens = static_cast<int>(std::clamp<std::int64_t>(
      p.tokens / (processors(launch) * 8), 1, std::min<std::int64_t>(2 * p.ratio, kMostTokens)));
  const auto blocks = static_cast<unsigned>(blocks_for(p.tokens, tokens));
  const bool short_window = (1 + p.overlap) * p.ratio <= 16;
  if (p.dim == 128) {
    compress_kernel<128, 1, 8, 16><<<blocks, 32, 0, launch.stream>>>(p, tokens);
  } else if (short_window) {
    compress_kernel<512, 1, 8, 5><<<blocks, 128, 0, launch.stream>>>(p, tokens);
  } else {
    compress_kernel<512, 4, 4, 2><<<blocks, 512, 0, launch.stream>>>(p, tokens);
  }
  check_launch("compress_window");
}

}  // namespace warmgate::kernels::cuda
