#include "harness/target/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "harness/target/sweep.h"

namespace warmgate::target {
namespace {

// The guard is forked from a program with threads, so it may use system calls and its own stack,
// nothing else: no allocation, no stdio, no sanitizer's bookkeeping.
#define WARMGATE_RAW __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

pid_t guard = 0, guard_owner = 0;
char needle[80];  // "WARMGATE_RUN=<pid>.<start>."
std::size_t needle_size = 0;
char environment[1 << 16];
char entries[1 << 15];

WARMGATE_RAW bool holds_needle(const char* text, long size) {
  for (long at = 0; at + static_cast<long>(needle_size) <= size; ++at) {
    if (at > 0 && text[at - 1] != '\0') continue;
    std::size_t i = 0;
    while (i < needle_size && text[at + static_cast<long>(i)] == needle[i]) ++i;
    if (i == needle_size) return true;
  }
  return false;
}

struct DirectoryEntry {  // of getdents64
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[1];
};

// Kills every process that carries the needle; how many there were.
WARMGATE_RAW int sweep() {
  int found = 0;
  const long proc = syscall(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return 0;
  for (;;) {
    const long size = syscall(SYS_getdents64, proc, entries, sizeof entries);
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->size;
      char path[40];
      int length = 0;
      int pid = 0;
      for (const char* c = entry->name; *c >= '0' && *c <= '9' && length < 12; ++c) {
        pid = pid * 10 + (*c - '0');
        path[length++] = *c;
      }
      if (pid <= 1 || entry->name[length] != '\0') continue;
      for (const char* c = "/environ"; *c != '\0'; ++c) path[length++] = *c;
      path[length] = '\0';
      const long fd = syscall(SYS_openat, proc, path, O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      long filled = 0;
      for (;;) {
        const long n = syscall(SYS_read, fd, environment + filled,
                               static_cast<long>(sizeof environment) - filled);
        if (n <= 0) break;
        filled += n;
      }
      syscall(SYS_close, fd);
      if (holds_needle(environment, filled)) {
        ++found;
        syscall(SYS_kill, pid, SIGKILL);
      }
    }
  }
  syscall(SYS_close, proc);
  return found;
}

WARMGATE_RAW void guard_main(int parent_pidfd) {
  // Nothing of ours may stay open because of the guard, least of all a pipe to whoever reads our
  // output. A session of its own: ctrl-c is not for it.
  syscall(SYS_setsid);
  const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) syscall(SYS_dup3, null, fd, 0);
  syscall(SYS_dup3, parent_pidfd, 3, O_CLOEXEC);
  syscall(SYS_close_range, 4u, ~0u, 0);
  syscall(SYS_prctl, PR_SET_NAME, "warmgate-guard", 0, 0, 0);
  const unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
  pollfd ended{3, POLLIN, 0};
  while (syscall(SYS_ppoll, &ended, 1, nullptr, nullptr, 0) <= 0) {
  }
  // Children of what was killed turn up later; a process that multiplies is caught in the end.
  for (int round = 0; round < 200; ++round) {
    if (sweep() == 0) break;
    const timespec pause{0, 5000000};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  syscall(SYS_exit_group, 0);
}

void send_away() {
  if (guard <= 0 || guard_owner != ::getpid()) return;
  ::kill(guard, SIGKILL);
  ::waitpid(guard, nullptr, 0);
  guard = 0;
}

bool start() {
  const std::string text = "WARMGATE_RUN=" + run_prefix();
  if (text.size() >= sizeof needle) return false;
  std::memcpy(needle, text.data(), text.size());
  needle_size = text.size();
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (self < 0) return false;
  unsigned long all = ~0ul, before = 0;  // no handler of ours runs in it
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  // fork(2) itself: the library's would run handlers of other libraries.
  const long child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) guard_main(self);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  ::close(self);
  if (child < 0) return false;
  guard = static_cast<pid_t>(child);
  guard_owner = ::getpid();
  register_worker(guard);  // nobody takes it for an orphan
  std::atexit(send_away);
  return true;
}

}  // namespace

const std::string& run_prefix() {
  static const std::string prefix = [] {
    ProcessInfo self;
    read_process(::getpid(), self);
    return std::to_string(::getpid()) + "." + std::to_string(self.start_ticks) + ".";
  }();
  return prefix;
}

void ensure_guard() {
  static const bool started = start();
  (void)started;
}

int guard_pid() { return guard; }

}  // namespace warmgate::target
