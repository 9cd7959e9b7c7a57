#include "harness/engine/ops/host_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace warmgate::engine {

namespace {

constexpr std::uint64_t kPage = 4096;
// Ranges become usable in steps of this many bytes.
constexpr std::uint64_t kStep = 1 << 20;
// From here on poison is mapped instead of written, so that what nobody touches costs nothing.
// Scratch is written over and over: there a write into warm pages beats new pages for long.
constexpr std::int64_t kMapLasting = 64 << 10, kMapScratch = 32 << 20;
// A mapping per piece: beyond so many bytes an allocation keeps its zeros instead. Only weights
// that are never read are that large.
constexpr std::int64_t kMostPoison = std::int64_t{16} << 30;
constexpr int kPoisonByte = 0xFF;

std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

void fill(std::uint64_t begin, std::uint64_t end) {
  if (end > begin) std::memset(pointer(begin), kPoisonByte, end - begin);
}

/// 0xFF bytes as a file, mapped privately wherever poison is wanted: read from the file until
/// somebody writes. One a process; -1 if the system has none to give.
class PoisonFile {
 public:
  static constexpr std::uint64_t kBytes = 8 << 20;
  static const PoisonFile& get() {
    static const PoisonFile file;
    return file;
  }
  /// [begin, end) in whole pages. False if it could not be mapped.
  bool map(std::uint64_t begin, std::uint64_t end) const {
    if (fd_ < 0) return false;
    for (std::uint64_t at = begin; at < end; at += kBytes) {
      const std::size_t bytes = std::min(kBytes, end - at);
      if (::mmap(pointer(at), bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd_, 0) == MAP_FAILED)
        return false;
    }
    return true;
  }

 private:
  PoisonFile() : fd_(::memfd_create("poison", MFD_CLOEXEC)) {
    if (fd_ < 0) return;
    void* data = MAP_FAILED;
    if (::ftruncate(fd_, kBytes) == 0)
      data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (data == MAP_FAILED) {
      ::close(fd_);
      fd_ = -1;
      return;
    }
    std::memset(data, kPoisonByte, kBytes);
    ::munmap(data, kBytes);
  }
  int fd_;
};

void poison(std::uint64_t begin, std::int64_t bytes, std::int64_t map_from) {
  const std::uint64_t end = begin + static_cast<std::uint64_t>(bytes);
  if (bytes > kMostPoison) return;
  const std::uint64_t first = up(begin, kPage), last = end / kPage * kPage;
  if (bytes < map_from || first >= last || !PoisonFile::get().map(first, last)) {
    fill(begin, end);
    return;
  }
  fill(begin, first);
  fill(last, end);
}

}  // namespace

HostMemory::HostMemory(std::int64_t total_bytes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 44;  // 16 TiB of 128 that a process can address
  const std::uint64_t total = up(static_cast<std::uint64_t>(total_bytes), kStep);
  if (total_bytes <= kMost) {
    size_ = 5 * total + 2 * kStep;
    base_ = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (base_ == nullptr || base_ == MAP_FAILED)
    throw std::runtime_error("no addresses for device memory of " + std::to_string(total_bytes) +
                             " bytes: " + std::strerror(base_ == nullptr ? ENOMEM : errno));
  const std::uint64_t begin = up(reinterpret_cast<std::uint64_t>(base_), kStep);
  lasting_ = {begin, begin + 4 * total, begin, begin};
  scratch_ = {lasting_.end, lasting_.end + total, lasting_.end, lasting_.end};
}

HostMemory::~HostMemory() { ::munmap(base_, size_); }

std::uint64_t HostMemory::advance(Range& range, std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(bytes);
  if (size > range.end - range.next)
    throw std::runtime_error("device memory: no addresses left for " + std::to_string(bytes) +
                             " bytes");
  const std::uint64_t out = range.next, end = out + size;
  if (end > range.usable) {
    const std::uint64_t usable = std::min(range.end, up(end, kStep));
    if (::mprotect(pointer(range.usable), usable - range.usable, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("device memory: " + std::to_string(bytes) +
                               " bytes: " + std::strerror(errno));
    range.usable = usable;
  }
  range.next = end;
  return out;
}

std::uint64_t HostMemory::take(std::int64_t bytes, Fresh fresh) {
  const std::uint64_t out = advance(lasting_, bytes);  // untouched so far, hence zero
  if (fresh != Fresh::kZero) poison(out, bytes, kMapLasting);
  return out;
}

void HostMemory::give_back(std::uint64_t address, std::int64_t bytes) {
  // Pages go back to the system; a stale view reads poison.
  poison(address, bytes, kMapLasting);
}

std::uint64_t HostMemory::push(std::int64_t bytes) {
  const std::uint64_t out = advance(scratch_, bytes);
  poison(out, bytes, kMapScratch);
  return out;
}

void HostMemory::pop_to(std::uint64_t mark) { holes_.pop_to(scratch_.next, mark); }

void HostMemory::pop(std::uint64_t address, std::int64_t bytes) {
  holes_.pop(scratch_.next, address, bytes);
}

}  // namespace warmgate::engine
