// A loop over several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace warmgate::run {

/// Does f(i) for every i on up to `threads` threads, this one among them; throws what the first f
/// threw, once all have ended.
template <typename F>
void in_parallel(std::size_t count, int threads, F&& f) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failed;
  std::once_flag once;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) f(i);
    } catch (...) {
      std::call_once(once, [&] { failed = std::current_exception(); });
      next = count;
    }
  };
  {
    std::vector<std::jthread> pool;
    const auto most = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
    for (std::size_t i = 1; i < most; ++i) pool.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace warmgate::run
