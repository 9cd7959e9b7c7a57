#include "harness/engine/ops/cpu_threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace warmgate::engine::ops::host {

namespace {

constexpr std::int64_t kWorthWaking = 2'000'000;  // multiply-adds, a tenth of a millisecond
constexpr int kMostThreads = 4;

std::atomic<int> forced{0};

int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::clamp(CPU_COUNT(&set), 1, kMostThreads);
}

/// Threads that wait for pieces. Never destroyed: at exit they wait, and hold nothing.
class Pool {
 public:
  explicit Pool(int helpers) {
    for (int i = 0; i < helpers; ++i) std::thread([this] { help(); }).detach();
  }
  /// piece(0) … piece(count-1), some of them here. One caller at a time.
  void run(int count, const std::function<void(int)>& piece) {
    {
      const std::lock_guard lock(mutex_);
      piece_ = &piece;
      next_ = 0;
      count_ = left_ = count;
    }
    wake_.notify_all();
    std::unique_lock lock(mutex_);
    while (next_ < count_) take(lock);
    done_.wait(lock, [this] { return left_ == 0; });
    piece_ = nullptr;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void take(std::unique_lock<std::mutex>& lock) {
    const int mine = next_++;
    const auto* piece = piece_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*piece)(mine);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) failure_ = failure;
    if (--left_ == 0) done_.notify_all();
  }
  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return piece_ != nullptr && next_ < count_; });
      take(lock);
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int)>* piece_ = nullptr;
  int next_ = 0, count_ = 0, left_ = 0;
  std::exception_ptr failure_;
};

std::mutex pool_mutex;

/// The process's pool. A child that was forked has none of its parent's threads. Call it with
/// pool_mutex held.
Pool& pool() {
  static Pool* made = nullptr;
  static pid_t owner = 0;
  if (made == nullptr || owner != getpid()) {
    owner = getpid();
    made = new Pool(std::max(1, cores() - 1));
  }
  return *made;
}

}  // namespace

void force_threads(int count) { forced = count; }

void share_rows(std::int64_t rows, std::int64_t unit, std::int64_t cost,
                const std::function<void(std::int64_t, std::int64_t)>& work) {
  static const int available = cores();
  const int wanted = forced;
  const std::int64_t units = (rows + unit - 1) / unit;
  const std::int64_t most = wanted > 0
                                ? std::min<std::int64_t>(wanted, units)
                                : std::min<std::int64_t>({available, units, cost / kWorthWaking});
  std::unique_lock busy(pool_mutex, std::defer_lock);
  if (most < 2 || !busy.try_lock()) {
    if (rows > 0) work(0, rows);
    return;
  }
  pool().run(static_cast<int>(most), [&](int piece) {
    const std::int64_t begin = units * piece / most * unit;
    const std::int64_t end = std::min(rows, units * (piece + 1) / most * unit);
    if (begin < end) work(begin, end);
  });
}

}  // namespace warmgate::engine::ops::host
