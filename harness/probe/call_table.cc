#include "harness/probe/call_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "harness/probe/report.h"

namespace warmgate::probe {
namespace {

// Of the calling thread, in the table that it was taken from.
thread_local trace::CallSlot* slot = nullptr;
thread_local const trace::CallTableFile* slot_of = nullptr;

bool may_grow_to(std::size_t bytes) {
  rlimit most{};  // a write beyond it would end the host by a signal
  return ::getrlimit(RLIMIT_FSIZE, &most) == 0 &&
         (most.rlim_cur == RLIM_INFINITY || most.rlim_cur >= bytes);
}

}  // namespace

bool CallTable::open_from_environment() {
  const char* folder = ::secure_getenv("WARMGATE_EVENTS_DIR");
  if (folder == nullptr || !may_grow_to(sizeof(trace::CallTableFile))) return false;
  char path[4096];
  const int length = std::snprintf(path, sizeof path, "%s/%s%ld", folder, trace::kCallTableFile,
                                   static_cast<long>(::getpid()));
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return false;
  const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  // Written, not only sized: a page that the disk has no room for would end the host by a signal.
  const auto zeros = std::make_unique<char[]>(sizeof(trace::CallTableFile));
  void* at = MAP_FAILED;
  if (::pwrite(fd, zeros.get(), sizeof(trace::CallTableFile), 0) ==
      static_cast<ssize_t>(sizeof(trace::CallTableFile))) {
    at = ::mmap(nullptr, sizeof(trace::CallTableFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  if (at == MAP_FAILED) {
    ::unlink(path);
    return false;
  }
  use(static_cast<trace::CallTableFile*>(at));
  return true;
}

void CallTable::use(trace::CallTableFile* file) {
  file_ = file;
  file_->head.pid = ::getpid();
  file_->head.slots = trace::kCallSlots;
  file_->head.slot_bytes = sizeof(trace::CallSlot);
  std::memcpy(file_->head.magic, trace::kCallTableMagic, sizeof file_->head.magic);
}

trace::CallSlot* CallTable::mine() {
  if (slot_of == file_) return slot;
  slot_of = file_;
  slot = nullptr;
  const std::int64_t tid = thread_id();
  for (trace::CallSlot& each : file_->slots) {
    std::int64_t owner = each.tid.load(std::memory_order_relaxed);
    // A number comes again once its thread is gone, and then the slot is this thread's.
    if (owner == 0 && each.tid.compare_exchange_strong(owner, tid)) owner = tid;
    if (owner != tid) continue;
    slot = &each;
    break;
  }
  return slot;
}

void CallTable::enter(const char* call, std::int64_t now_ns) {
  if (file_ == nullptr || call == nullptr) return;
  trace::CallSlot* at = mine();
  if (at == nullptr) return;
  std::strncpy(at->call, call, sizeof at->call - 1);
  at->calls.fetch_add(1, std::memory_order_relaxed);
  at->since_ns.store(now_ns, std::memory_order_release);
}

void CallTable::leave() {
  if (file_ == nullptr) return;
  if (trace::CallSlot* at = mine()) at->since_ns.store(0, std::memory_order_release);
}

}  // namespace warmgate::probe
