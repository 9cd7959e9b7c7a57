#include "harness/target/sink_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace warmgate::target {

SinkQueue::SinkQueue(std::size_t most)
    : most_(most), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void SinkQueue::add(trace::Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= most_) {
      ++dropped_;
      return;
    }
    events_.push_back(std::move(event));
  }
  wake();
}

void SinkQueue::wake() {
  const std::uint64_t one = 1;
  // A full counter is as readable as any other.
  [[maybe_unused]] const auto ignored = ::write(fd_.get(), &one, sizeof one);
}

std::vector<trace::Event> SinkQueue::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto ignored = ::read(fd_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::size_t SinkQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace warmgate::target
