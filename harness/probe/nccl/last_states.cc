#include "harness/probe/nccl/last_states.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "harness/trace/wire.h"

namespace warmgate::probe::nccl {

namespace {

constexpr std::size_t kBytes = LastStates::kCommunicators * 2 * LastStates::kRecordBytes;

}  // namespace

bool LastStates::open(const char* folder) {
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < kBytes) return false;
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const std::string path = std::string(folder) + "/" + host + "." + std::to_string(::getpid()) +
                           "." + std::to_string(trace::now_ns()) + ".last";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  void* memory = MAP_FAILED;
  if (::posix_fallocate(fd, 0, kBytes) == 0)
    memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  // The mapping stays; the number is left to the host, which may close what it finds.
  ::close(fd);
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    return false;
  }
  ::madvise(memory, kBytes, MADV_DONTFORK);
  memory_ = static_cast<char*>(memory);
  return true;
}

void LastStates::write(std::size_t index, std::string_view text) {
  if (memory_ == nullptr || index >= kCommunicators || text.size() >= kRecordBytes) return;
  turn_[index] ^= 1;
  char* at = memory_ + (index * 2 + turn_[index]) * kRecordBytes;
  std::memcpy(at, text.data(), text.size());
  std::memset(at + text.size(), ' ', kRecordBytes - 1 - text.size());
  at[kRecordBytes - 1] = '\n';
}

}  // namespace warmgate::probe::nccl
