#include "kernels/jit/host_kernels.h"

#include "kernels/jit/host_prelude.h"
#include "kernels/jit/kernel_table.h"

namespace warmgate::jit {
namespace {

// Each body becomes a member function; what is a template argument on the device is a member here.
struct ComputePrefillBody {
  Geometry geometry;
  Int BLOCK_SIZE;
#include "kernels/jit/bodies/compute_prefill_metadata.cuh"
};

struct BuildChunkBody {
  Geometry geometry;
  Int QUERY_SLICE_START, QUERY_SLICE_STOP, DCP_RANK, DCP_WORLD, DCP_INTERLEAVE, BLOCK_SIZE,
      COMPRESS_RATIO;
  bool SEQ_LENS_ALIGNED;
#include "kernels/jit/bodies/build_prefill_chunk_metadata.cuh"
};

struct CombineBody {
  Geometry geometry;
  Int COMPRESS_RATIO, TOP_K, PADDED_TOP_K, WINDOW_SIZE;
  bool TOPK_ALIGNED, QUERY_START_LOC_ALIGNED, SEQ_LENS_ALIGNED, GATHER_LENS_ALIGNED;
#include "kernels/jit/bodies/combine_topk_swa_indices.cuh"
};

IntsIn in(const InBuffer& b) { return IntsIn(b.data, b.size, b.phase); }
IntsOut out(const OutBuffer& b) { return IntsOut(b.data, b.size); }

template <typename Body>
void for_each_thread(Body& body, int blocks_x, int blocks_y, int threads, auto&& call) {
  body.geometry.threads = threads;
  body.geometry.grid_y = blocks_y;
  for (body.geometry.block_x = 0; body.geometry.block_x < blocks_x; ++body.geometry.block_x) {
    for (body.geometry.block_y = 0; body.geometry.block_y < blocks_y; ++body.geometry.block_y) {
      for (body.geometry.thread = 0; body.geometry.thread < threads; ++body.geometry.thread) {
        steps_left = std::int64_t{1} << 22;
        call();
      }
    }
  }
}

}  // namespace

void run_on_host(const Key& key, const ComputePrefillLaunch& launch, int threads) {
  const Constants c = constants_of(key, kComputePrefillMetadata);
  ComputePrefillBody body{{}, c[0]};
  for_each_thread(body, 1, 1, threads, [&] {
    body.ComputePrefillMetadata(out(launch.gather_lens), in(launch.query_start_loc),
                                in(launch.seq_lens), launch.num_prefills, launch.num_decodes,
                                launch.window);
  });
}

void run_on_host(const Key& key, const BuildChunkLaunch& launch, int threads) {
  const Constants c = constants_of(key, kBuildPrefillChunkMetadata);
  BuildChunkBody body{{}, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7] != 0};
  for_each_thread(body, launch.num_requests, 1, threads, [&] {
    body.BuildPrefillChunkMetadata(out(launch.key_starts), out(launch.key_ends),
                                   out(launch.key_requests), in(launch.query_start_loc),
                                   in(launch.uncompressed_seq_lens), launch.query_slice_start,
                                   launch.query_slice_stop);
  });
}

void run_on_host(const Key& key, const CombineLaunch& launch, int threads) {
  const Constants c = constants_of(key, kCombineTopkSwaIndices);
  CombineBody body{{}, c[0], c[1], c[2], c[3], c[4] != 0, c[5] != 0, c[6] != 0, c[7] != 0};
  for_each_thread(body, launch.num_requests, launch.num_workers, threads, [&] {
    body.CombineTopkSwaIndices(out(launch.combined_indices), launch.combined_stride,
                               out(launch.combined_lens), in(launch.topk_indices),
                               launch.topk_stride, in(launch.query_start_loc), in(launch.seq_lens),
                               in(launch.gather_lens), launch.M, launch.N);
  });
}

}  // namespace warmgate::jit
