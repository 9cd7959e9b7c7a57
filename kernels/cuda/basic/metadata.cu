// Lists: one block a token, one column a thread at a time. Positions and slots are below 2^31.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/metadata.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 128;

__device__ __forceinline__ int64_t thread_of_grid() {
  return blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
}

__global__ void token_to_req_kernel(cpu::TokenToReq p) {
  const int64_t t = thread_of_grid();
  if (t >= p.tokens) return;
  // The last request that begins at or before t; requests without tokens are passed over.
  int64_t low = 0, high = p.requests;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (p.query_start[middle + 1] <= t) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const bool inside = low < p.requests && p.query_start[low] <= t;
  p.token_to_req[t] = inside ? static_cast<int32_t>(low) : 0;
  p.is_valid[t] = p.slots[t] >= 0 ? 1 : 0;
}

__global__ void slot_mapping_kernel(cpu::SlotMapping p, int64_t count) {
  const int64_t t = thread_of_grid();
  if (t >= count) return;
  int64_t slot = -1;
  if (t < p.tokens) {
    const uint32_t position = static_cast<uint32_t>(p.positions[t]);
    const uint32_t ratio = static_cast<uint32_t>(p.ratio);
    if ((position + 1) % ratio == 0) slot = slot_of(p.table, p.token_to_req[t], position / ratio);
  }
  p.slots[t] = slot;
}

// By a block: slots of rows begin..end-1, then -1; thread 0 writes the length.
__device__ void list_slots(const cpu::BlockTable& table, int64_t request, int64_t begin,
                           int64_t end, int64_t width, int32_t* out, int32_t* length) {
  const int64_t count = min(max(end - begin, int64_t{0}), width);
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    out[i] = i < count
                 ? static_cast<int32_t>(slot_of(table, request, static_cast<uint32_t>(begin + i)))
                 : -1;
  }
  if (threadIdx.x == 0) *length = static_cast<int32_t>(count);
}

__global__ void swa_kernel(cpu::SwaIndices p) {
  const int64_t t = blockIdx.x;
  if (p.is_valid[t] == 0) {
    if (threadIdx.x == 0) p.lens[t] = 0;
    return;
  }
  const int64_t position = p.positions[t], start = max(position - p.window + 1, int64_t{0});
  list_slots(p.table, p.token_to_req[t], start, position + 1, p.width, p.indices + t * p.width,
             p.lens + t);
}

__global__ void noncausal_kernel(cpu::NoncausalSwaIndices p) {
  const int64_t t = blockIdx.x;
  if (p.is_valid[t] == 0) {
    if (threadIdx.x == 0) p.lens[t] = 0;
    return;
  }
  const int64_t b = p.token_to_req[t];
  const int64_t prefix = p.seq_lens[b] - (p.query_start[b + 1] - p.query_start[b]);
  const int64_t start = max(prefix - p.window, int64_t{0});
  list_slots(p.table, b, start, p.seq_lens[b], p.width, p.indices + t * p.width, p.lens + t);
}

__global__ void compressed_kernel(cpu::CompressedIndices p) {
  const int64_t t = blockIdx.x;
  int32_t* out = p.indices + t * p.width;
  const int64_t entries = min((p.positions[t] + 1) / p.ratio, p.width);
  if (p.table.entries == nullptr) {
    for (int64_t i = threadIdx.x; i < p.width; i += blockDim.x)
      out[i] = i < entries ? static_cast<int32_t>(i) : -1;
    return;
  }
  const bool valid = p.is_valid[t] != 0;
  list_slots(p.table, valid ? p.token_to_req[t] : 0, 0, valid ? entries : 0, p.width, out,
             p.lens + t);
}

__global__ void visible_kernel(cpu::VisibleEntries p) {
  const int64_t t = thread_of_grid();
  if (t < p.tokens) p.lens[t] = static_cast<int32_t>((p.positions[t] + 1) / p.ratio);
}

__global__ void expand_kernel(cpu::ExpandTable p) {
  const int64_t t = blockIdx.x;
  const int32_t* from = p.table.entries + p.token_to_req[t] * p.table.stride;
  for (int64_t i = threadIdx.x; i < p.width; i += blockDim.x) p.expanded[t * p.width + i] = from[i];
}

unsigned threads_for(std::int64_t tokens) { return static_cast<unsigned>(blocks_for(tokens, 128)); }
unsigned block_each(std::int64_t tokens) { return static_cast<unsigned>(tokens); }

}  // namespace

Reason can_run(const cpu::TokenToReq&, const Launch&) { return {}; }
void run(const cpu::TokenToReq& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  token_to_req_kernel<<<threads_for(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("token_to_req");
}

Reason can_run(const cpu::SlotMapping&, const Launch&) { return {}; }
void run(const cpu::SlotMapping& p, const Launch& launch) {
  const std::int64_t count = std::max(p.capacity, p.tokens);
  if (count <= 0) return;
  slot_mapping_kernel<<<threads_for(count), kThreads, 0, launch.stream>>>(p, count);
  check_launch("slot_mapping");
}

Reason can_run(const cpu::SwaIndices&, const Launch&) { return {}; }
void run(const cpu::SwaIndices& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  swa_kernel<<<block_each(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("swa_indices");
}

Reason can_run(const cpu::NoncausalSwaIndices&, const Launch&) { return {}; }
void run(const cpu::NoncausalSwaIndices& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  noncausal_kernel<<<block_each(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("noncausal_swa_indices");
}

Reason can_run(const cpu::CompressedIndices&, const Launch&) { return {}; }
void run(const cpu::CompressedIndices& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  compressed_kernel<<<block_each(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("compressed_indices");
}

Reason can_run(const cpu::VisibleEntries&, const Launch&) { return {}; }
void run(const cpu::VisibleEntries& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  visible_kernel<<<threads_for(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("visible_entries");
}

Reason can_run(const cpu::ExpandTable&, const Launch&) { return {}; }
void run(const cpu::ExpandTable& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  expand_kernel<<<block_each(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("expand_table");
}

}  // namespace warmgate::kernels::cuda
