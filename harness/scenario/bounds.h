// Products of legal values that would leave the integers they are kept in: refused by the reader,
// at the value to blame, with the largest that is allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/scenario/resolved.h"

namespace warmgate::scenario {

/// Ids of KV blocks are int32 in block tables, 0 being the null block.
inline constexpr std::int64_t kMostBlocks = 2147483647;
/// Requests of all groups together: each has a record in the engine.
inline constexpr std::int64_t kMostRequests = 1000000;
/// Rows of RoPE tables (YaRN factor times original length), as positions go: 2^30.
inline constexpr std::int64_t kMostRopeRows = std::int64_t{1} << 30;

/// Bytes of one KV block: the largest group of caches, each page padded to whole rows of the
/// layout. 0 for a model without layers. Derived from vLLM at d40c3e3c00, v1/core/kv_cache_utils.py
/// and v1/kv_cache_interface.py; the engine counts the same from its caches (a test compares).
std::int64_t kv_block_bytes(const Resolved& resolved);

/// Key path as its parts, and what is wrong there.
using WrongAt = std::function<void(const std::vector<std::string>& keys, const std::string& what)>;

/// KV blocks that the memory gives. Needs a right model, drafter and limits.
void check_blocks(const Resolved& resolved, const WrongAt& wrong);
void check_rope_rows(const Model& model, const WrongAt& wrong);
void check_requests(const Workload& workload, const WrongAt& wrong);

}  // namespace warmgate::scenario
