// Large ops share their rows out to the processor's cores. Every row is computed as it would be
// alone, so results do not depend on how many threads there are. For ops/cpu_*.cc,
// and for the checks of their results.
#pragma once

#include <cstdint>
#include <functional>

namespace warmgate::engine::ops::host {

/// Calls work(begin, end) for pieces that together are 0..rows, in any order and at once; pieces
/// begin at multiples of `unit`. One piece, on this thread, where `cost` (multiply-adds of all
/// rows) is not worth waking others for, or another thread is at it already. Rethrows what work
/// throws.
void share_rows(std::int64_t rows, std::int64_t unit, std::int64_t cost,
                const std::function<void(std::int64_t, std::int64_t)>& work);

/// For tests and benchmarks: at most so many threads, and any cost is worth it; 0: as it was, the
/// cores that this process may use, at most four.
void force_threads(int count);

}  // namespace warmgate::engine::ops::host
