// Groups of the packed slab, block stride, and the capacity that follows.
// Origin: vLLM at d40c3e3c00, v1/core/kv_cache_utils.py; the worked capacity reproduces the figures
// of vllm-project/vllm#50693.
#pragma once

#include "harness/engine/memory/cache_spec.h"
#include "harness/engine/model.h"

namespace warmgate::engine {

/// One group with what the engine needs beyond its description: which module sits where.
struct CacheGroup {
  struct Member {
    std::size_t module = 0;   // index into the list of modules
    std::int64_t offset = 0;  // of its page inside a block, bytes
  };
  std::string name;
  CacheClass cls{};
  std::int64_t bytes = 0, block_tokens = 0, window = 0;
  std::vector<Member> members;
};

/// All caches that are kept whole; C4 states; C128 states; window caches, every second one into the
/// second of two groups. Classes without members are left out.
std::vector<CacheGroup> group_caches(const std::vector<CacheModule>& modules);

/// Blocks that one request of `length` tokens takes in a group of this shape:
/// whole: ceil(length/block); windows: ceil(min(window-1+inflight, length)/block) + 1.
std::int64_t group_blocks(std::int64_t block_tokens, std::int64_t window, std::int64_t inflight,
                          std::int64_t length);

/// Throws std::runtime_error if one request of max_model_len does not fit, or pool_bytes is below
/// one block.
KvPlan plan_kv_cache(const Dims& dims, const std::vector<CacheModule>& modules,
                     const std::vector<CacheGroup>& groups, std::int64_t pool_bytes);

}  // namespace warmgate::engine
