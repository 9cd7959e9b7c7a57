#include "harness/engine/memory/block_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

void fill_slots(std::span<const std::int32_t> row, std::int64_t block_tokens, std::int64_t first,
                std::span<std::int64_t> slots) {
  const auto count = static_cast<std::int64_t>(slots.size());
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t column = (first + i) / block_tokens;
    const std::int64_t offset = (first + i) % block_tokens;
    const std::int64_t run = std::min(block_tokens - offset, count - i);
    const std::int64_t block =
        column < static_cast<std::int64_t>(row.size()) ? row[static_cast<std::size_t>(column)] : 0;
    for (std::int64_t k = 0; k < run; ++k) {
      slots[static_cast<std::size_t>(i + k)] = block > 0 ? block * block_tokens + offset + k : -1;
    }
    i += run;
  }
}

void fill_compressed_slots(std::span<const std::int32_t> row, std::int64_t block_tokens,
                           std::int64_t ratio, std::int64_t first, std::span<std::int64_t> slots) {
  std::fill(slots.begin(), slots.end(), -1);
  const std::int64_t rows = block_tokens / ratio;
  const auto end = first + static_cast<std::int64_t>(slots.size());
  for (std::int64_t p = round_up(first + 1, ratio) - 1; p < end; p += ratio) {
    const std::int64_t entry = p / ratio;
    const std::int64_t column = entry / rows;
    const std::int64_t block =
        column < static_cast<std::int64_t>(row.size()) ? row[static_cast<std::size_t>(column)] : 0;
    if (block > 0) slots[static_cast<std::size_t>(p - first)] = block * rows + entry % rows;
  }
}

void clamp_negative(std::span<std::int32_t> row) {
  for (std::int32_t& block : row) block = std::max(block, 0);
}

BlockTables::BlockTables(const std::vector<CacheGroup>& groups, std::int64_t num_blocks,
                         std::int64_t max_seqs, std::int64_t max_model_len)
    : pool_(num_blocks), max_seqs_(max_seqs), max_model_len_(max_model_len) {
  for (const CacheGroup& group : groups) {
    Group out;
    out.block_tokens = group.block_tokens;
    out.window = group.window;
    out.columns = ceil_div(max_model_len, group.block_tokens);
    out.rows.resize(static_cast<std::size_t>(max_seqs));
    groups_.push_back(std::move(out));
  }
}

void BlockTables::check(std::int64_t request) const {
  if (request < 0 || request >= max_seqs_) {
    throw std::out_of_range(
        fmt::format("request row {}: block tables have rows 0..{}", request, max_seqs_ - 1));
  }
}

bool BlockTables::grow(std::int64_t request, std::int64_t tokens) {
  check(request);
  if (tokens > max_model_len_) {
    throw std::out_of_range(fmt::format("request row {} of {} tokens: max_model_len is {}", request,
                                        tokens, max_model_len_));
  }
  const auto r = static_cast<std::size_t>(request);
  std::int64_t missing = 0;
  for (const Group& group : groups_) {
    const auto have = static_cast<std::int64_t>(group.rows[r].blocks.size());
    missing += std::max<std::int64_t>(0, ceil_div(tokens, group.block_tokens) - have);
  }
  if (missing > pool_.free()) return false;
  for (Group& group : groups_) {
    auto& blocks = group.rows[r].blocks;
    const auto want =
        static_cast<std::size_t>(ceil_div(std::max<std::int64_t>(tokens, 0), group.block_tokens));
    while (blocks.size() < want) blocks.push_back(pool_.take());
  }
  return true;
}

void BlockTables::free_window(std::int64_t request, std::int64_t computed) {
  check(request);
  for (Group& group : groups_) {
    if (group.window == 0) continue;
    Row& row = group.rows[static_cast<std::size_t>(request)];
    const std::int64_t first_needed =
        std::max<std::int64_t>(0, computed - group.window + 1) / group.block_tokens;
    const auto end =
        std::min<std::int64_t>(first_needed, static_cast<std::int64_t>(row.blocks.size()));
    for (; row.first_held < end; ++row.first_held) {
      std::int32_t& block = row.blocks[static_cast<std::size_t>(row.first_held)];
      pool_.give_back(block);
      block = 0;
    }
  }
}

void BlockTables::release(std::int64_t request) {
  check(request);
  for (Group& group : groups_) {
    Row& row = group.rows[static_cast<std::size_t>(request)];
    for (const std::int32_t block : row.blocks) {
      if (block > 0) pool_.give_back(block);
    }
    row.blocks.clear();
    row.first_held = 0;
  }
}

void BlockTables::check_held(std::int64_t request, std::int64_t first, std::int64_t end) const {
  check(request);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Row& row = groups_[g].rows[static_cast<std::size_t>(request)];
    const std::int64_t block_tokens = groups_[g].block_tokens;
    const std::int64_t covered = static_cast<std::int64_t>(row.blocks.size()) * block_tokens;
    if (end <= covered && first / block_tokens >= row.first_held) continue;
    throw std::logic_error(fmt::format(
        "request row {}, cache group {}: no block for positions {}..{}; blocks hold {}..{}",
        request, g, first, end - 1, row.first_held * block_tokens, covered - 1));
  }
}

std::span<const std::int32_t> BlockTables::row(std::size_t group, std::int64_t request) const {
  check(request);
  return groups_.at(group).rows[static_cast<std::size_t>(request)].blocks;
}

std::span<std::int32_t> BlockTables::mutable_row(std::size_t group, std::int64_t request) {
  check(request);
  return groups_.at(group).rows[static_cast<std::size_t>(request)].blocks;
}

std::int64_t BlockTables::held(std::int64_t request) const {
  check(request);
  std::int64_t count = 0;
  for (const Group& group : groups_) {
    const Row& row = group.rows[static_cast<std::size_t>(request)];
    count += static_cast<std::int64_t>(row.blocks.size()) - row.first_held;
  }
  return count;
}

}  // namespace warmgate::engine
