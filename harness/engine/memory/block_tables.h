// Block tables and slot mappings of all groups: real integers, on the host.
// The device sees an int32 [max_num_seqs, ceil(L/block)] table a group; here a request's row is
// kept only as far as it has blocks, everything behind it being 0 there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/engine/memory/block_pool.h"
#include "harness/engine/memory/kv_plan.h"

namespace warmgate::engine {

/// Fills slots[0..count) for positions first.. of one request: table[p/block]·block + p mod block,
/// -1 where the table has the null block.
void fill_slots(std::span<const std::int32_t> row, std::int64_t block_tokens, std::int64_t first,
                std::span<std::int64_t> slots);
/// The same for compressed entries: only where (p+1) mod ratio == 0, entry j = p/ratio in blocks of
/// 256/ratio rows: table[j/rows]·rows + j mod rows; -1 everywhere else.
/// Origin: vLLM at d40c3e3c00, v1/attention/backends/mla/compressor_utils.py.
void fill_compressed_slots(std::span<const std::int32_t> row, std::int64_t block_tokens,
                           std::int64_t ratio, std::int64_t first, std::span<std::int64_t> slots);
/// Entries of freed blocks may be negative in a table from outside; builders clamp them in place.
void clamp_negative(std::span<std::int32_t> row);

class BlockTables {
 public:
  BlockTables() = default;
  BlockTables(const std::vector<CacheGroup>& groups, std::int64_t num_blocks, std::int64_t max_seqs,
              std::int64_t max_model_len);

  /// Blocks so that every group covers positions 0..tokens-1; false, and nothing taken, if the pool
  /// is short. Throws std::out_of_range for a row outside the tables or tokens above max_model_len.
  bool grow(std::int64_t request, std::int64_t tokens);
  /// Gives back blocks of window groups that no token from position `computed` on can reach:
  /// those wholly before computed - window + 1. Their entries become the null block.
  void free_window(std::int64_t request, std::int64_t computed);
  void release(std::int64_t request);

  /// Throws std::logic_error naming row, group and position where a position of first..end-1 has no
  /// block: what a step is about to write must have been taken and not freed.
  void check_held(std::int64_t request, std::int64_t first, std::int64_t end) const;

  std::span<const std::int32_t> row(std::size_t group, std::int64_t request) const;
  std::span<std::int32_t> mutable_row(std::size_t group, std::int64_t request);
  std::int64_t block_tokens(std::size_t group) const { return groups_[group].block_tokens; }
  std::int64_t window(std::size_t group) const { return groups_[group].window; }
  std::int64_t columns(std::size_t group) const { return groups_[group].columns; }
  std::size_t groups() const { return groups_.size(); }
  std::int64_t free_blocks() const { return pool_.free(); }
  std::int64_t held(std::int64_t request) const;

 private:
  struct Row {
    std::vector<std::int32_t> blocks;
    std::int64_t first_held = 0;  // entries before it were freed
  };
  struct Group {
    std::int64_t block_tokens = 0, window = 0, columns = 0;
    std::vector<Row> rows;
  };
  void check(std::int64_t request) const;
  std::vector<Group> groups_;
  BlockPool pool_;
  std::int64_t max_seqs_ = 0, max_model_len_ = 0;
};

}  // namespace warmgate::engine
