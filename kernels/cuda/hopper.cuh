// Hopper's asynchronous machinery behind plain functions: barriers in shared memory (mbarrier),
// copies (cp.async, bulk, tensor maps), proxy fences, register budgets, clusters; with wgmma.cuh's
// products. For kernels built for sm_90a whose bodies are guarded by __CUDA_ARCH_FEAT_SM90_ALL.
// Origin: PTX ISA 9.0.
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "kernels/cuda/wgmma.cuh"

namespace warmgate::kernels::cuda {

/// A barrier in shared memory; 8-byte aligned. Phases alternate: a waiter names the parity (0
/// first) of the phase it waits for.
using Barrier = uint64_t;

/// One thread; then fence_barrier_init() and a __syncthreads (or cluster_sync) before any use.
__device__ __forceinline__ void init_barrier(Barrier* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
/// Initialisations are seen by the cluster and by the copy engine.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared::cta.b64 state, [%0];\n}" ::"r"(
                   shared_address(barrier))
               : "memory");
}
/// At the barrier at the same place in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ void arrive_at(Barrier* barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
}
/// Arrives, and the phase also waits for `bytes` of asynchronous copies.
__device__ __forceinline__ void arrive_expecting(Barrier* barrier, uint32_t bytes) {
  asm volatile(
      "{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(
          shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void wait(Barrier* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
/// For barriers that other blocks of the cluster arrive at.
__device__ __forceinline__ void wait_cluster(Barrier* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// Shared memory written by ordinary stores is seen by wgmma and bulk copies: in each writing
/// thread, before the barrier that tells the reader.
__device__ __forceinline__ void fence_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// 16 bytes global → shared, past L1; `valid` false writes zeros and reads nothing.
__device__ __forceinline__ void copy_async_16(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_async_8(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(valid ? 8 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_async_4(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(valid ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
/// The thread's arrival at `barrier`, made when its copies so far have landed. Counts as one of the
/// barrier's arrivals. What lands is written as ordinary stores are: readers through wgmma need
/// fence_proxy() in the waiting thread's stead, so copy_async_wait() + fence_proxy() + arrive().
__device__ __forceinline__ void arrive_after_copies(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// `bytes` (a multiple of 16, both addresses too) global → shared by the copy engine; one thread.
/// The barrier's phase counts the bytes (arrive_expecting).
__device__ __forceinline__ void copy_bulk(void* shared, const void* global, uint32_t bytes,
                                          Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
/// A box of a tensor map → shared; coordinates innermost first, in elements.
__device__ __forceinline__ void copy_tensor(void* shared, const CUtensorMap* map, Barrier* barrier,
                                            int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void copy_tensor(void* shared, const CUtensorMap* map, Barrier* barrier,
                                            int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/// Shared → a box of a tensor map; fence_proxy() by the writers and a barrier come before.
__device__ __forceinline__ void store_tensor(const CUtensorMap* map, const void* shared, int x,
                                             int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(shared)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
/// Shared → global, `bytes` a multiple of 16.
__device__ __forceinline__ void store_bulk(void* global, const void* shared, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until the sources of all but `kPending` groups of this thread's bulk stores may be overwritten.
template <int kPending>
__device__ __forceinline__ void store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Registers a thread of this warpgroup: multiples of 8, 24..256. All its warps call it.
template <int kRegisters>
__device__ __forceinline__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Barrier `id` (1..15; 0 is __syncthreads') among `threads` threads, whole warps.
__device__ __forceinline__ void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// All threads of all blocks of the cluster, in turn; whole warps.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
/// The address, for instructions on shared::cluster, of `shared` in block `rank` of the cluster.
__device__ __forceinline__ uint32_t cluster_address(const void* shared, uint32_t rank) {
  uint32_t out = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(out)
               : "r"(shared_address(shared)), "r"(rank));
  return out;
}

/// One lane of a converged warp.
__device__ __forceinline__ bool elected() {
  uint32_t out = 0;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xFFFFFFFF;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(out));
  return out != 0;
}

/// Programmatic dependent launch: what follows in the stream may start / waits for what precedes.
__device__ __forceinline__ void let_next_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ __forceinline__ void wait_for_previous() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

}  // namespace warmgate::kernels::cuda
