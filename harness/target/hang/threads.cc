#include "harness/target/hang/threads.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line.substr(0, 512);
}

// "[<0>] futex_wait_queue+0x5c/0x90" → futex_wait_queue
std::vector<std::string> kernel_stack_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; out.size() < 24 && std::getline(in, line);) {
    const std::size_t begin = line.find("] ");
    if (begin == std::string::npos) continue;
    line = line.substr(begin + 2);
    out.push_back(line.substr(0, line.find('+')));
  }
  return out;
}

// What follows the name in brackets, which may hold brackets itself, of /proc/PID/stat.
void read_stat(const fs::path& file, ThreadState& out) {
  const std::string line = first_line(file);
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return;
  std::istringstream rest(line.substr(end + 1));
  std::string skipped;
  rest >> out.state;
  for (int i = 0; i < 10; ++i) rest >> skipped;
  double user = 0, system = 0;
  if (rest >> user >> system)
    out.cpu_s = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::string system_call_name(long number) {
  struct Named {
    long number;
    const char* name;
  };
  static constexpr Named kNames[] = {
      {SYS_futex, "futex"},
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_ppoll, "ppoll"},
      {SYS_ioctl, "ioctl"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_accept, "accept"},
      {SYS_accept4, "accept4"},
      {SYS_connect, "connect"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_pselect6, "pselect6"},
      {SYS_openat, "openat"},
      {SYS_fsync, "fsync"},
      {SYS_flock, "flock"},
      {SYS_sched_yield, "sched_yield"},
      {SYS_mmap, "mmap"},
      {SYS_munmap, "munmap"},
      {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
      {SYS_rt_sigsuspend, "rt_sigsuspend"},
#ifdef SYS_poll
      {SYS_poll, "poll"},
#endif
#ifdef SYS_select
      {SYS_select, "select"},
#endif
#ifdef SYS_epoll_wait
      {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_pause
      {SYS_pause, "pause"},
#endif
  };
  for (const Named& each : kNames) {
    if (each.number == number) return each.name;
  }
  return "system call " + std::to_string(number);
}

bool catches(pid_t pid, int signal) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("SigCgt:", 0) != 0) continue;
    const unsigned long long mask = std::strtoull(line.c_str() + 7, nullptr, 16);
    return signal >= 1 && signal <= 64 && (mask >> (signal - 1) & 1) != 0;
  }
  return false;
}

bool is_open_as(pid_t pid, std::int64_t fd, const fs::path& file) {
  if (fd < 0) return false;
  struct stat theirs {
  }, ours{};
  const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  return ::stat(link.c_str(), &theirs) == 0 && ::lstat(file.c_str(), &ours) == 0 &&
         S_ISREG(ours.st_mode) && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

std::vector<ThreadState> threads_of(pid_t pid, std::size_t most) {
  std::vector<long> tids;
  std::error_code failed;
  const fs::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (fs::directory_iterator it(tasks, failed), end; !failed && it != end; it.increment(failed))
    tids.push_back(std::atol(it->path().filename().c_str()));
  std::sort(tids.begin(), tids.end());
  const auto first = std::find(tids.begin(), tids.end(), pid);
  if (first != tids.end()) std::rotate(tids.begin(), first, first + 1);
  if (tids.size() > most) tids.resize(most);
  std::vector<ThreadState> out;
  for (const long tid : tids) {
    const fs::path folder = tasks / std::to_string(tid);
    ThreadState each;
    each.tid = tid;
    each.name = first_line(folder / "comm");
    read_stat(folder / "stat", each);
    if (each.state == '?') continue;  // gone meanwhile
    const std::string call = first_line(folder / "syscall");
    char* end = nullptr;
    const long number = std::strtol(call.c_str(), &end, 10);
    if (end != call.c_str() && number >= 0) {
      each.wait = system_call_name(number);
    } else if (call.rfind("running", 0) != 0) {
      const std::string where = first_line(folder / "wchan");
      if (where != "0") each.wait = where;
    }
    each.kernel_stack = kernel_stack_of(folder / "stack");
    out.push_back(std::move(each));
  }
  return out;
}

}  // namespace warmgate::target
