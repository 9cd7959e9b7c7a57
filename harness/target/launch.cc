#include "harness/target/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

extern char** environ;

namespace warmgate::target {
namespace {

// posix_spawn cannot set a parent-death signal or a resource limit, and a shim program would cost
// a second exec. So this does what glibc's posix_spawn does (clone with CLONE_VM | CLONE_VFORK on a
// stack of its own), with those two steps added. The child shares our memory until it execs:
// nothing in it may allocate, lock, throw or be instrumented, hence raw system calls only.
#define WARMGATE_RAW __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

enum class Step { kNone, kGroup, kParent, kStdio, kClose, kLimit, kFolder, kExec };

const char* text(Step step) {
  switch (step) {
    case Step::kNone:
      return "clone";
    case Step::kGroup:
      return "setpgid";
    case Step::kParent:
      return "parent-death signal";
    case Step::kStdio:
      return "standard streams";
    case Step::kClose:
      return "closing descriptors";
    case Step::kLimit:
      return "memory limit";
    case Step::kFolder:
      return "working folder";
    case Step::kExec:
      return "exec";
  }
  return "";
}

// The kernel's, not glibc's: rt_sigaction takes this layout on every 64-bit Linux.
struct KernelSigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};
constexpr KernelSigaction kStandard{nullptr, 0, nullptr, 0};

struct Orders {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* env = nullptr;
  const char* cwd = nullptr;
  int stdio[3] = {-1, -1, -1};
  const int* keep = nullptr;  // sorted, each >= 3
  std::size_t keep_count = 0;
  bool limited = false;
  rlimit limit{};
  pid_t parent = 0;
  // Written by the child, read by us after it has exec'ed or died.
  Step failed = Step::kNone;
  int error = 0;
};

#define WARMGATE_TRY(step, call)    \
  do {                              \
    if ((call) == -1) {             \
      orders->failed = Step::step;  \
      orders->error = errno;        \
      syscall(SYS_exit_group, 127); \
    }                               \
  } while (false)

WARMGATE_RAW bool close_between(unsigned first, unsigned last) {
  if (first > last) return true;
  if (syscall(SYS_close_range, first, last, 0) == 0) return true;
  if (errno != ENOSYS) return false;
  for (unsigned fd = first; fd <= last && fd <= 65535; ++fd) syscall(SYS_close, fd);
  return true;
}

WARMGATE_RAW int child_main(void* argument) {
  Orders* orders = static_cast<Orders*>(argument);
  WARMGATE_TRY(kGroup, syscall(SYS_setpgid, 0, 0));
  WARMGATE_TRY(kParent, syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
  if (syscall(SYS_getppid) != orders->parent) syscall(SYS_exit_group, 127);  // it died just now
  for (int i = 0; i < 3; ++i) WARMGATE_TRY(kStdio, syscall(SYS_dup3, orders->stdio[i], i, 0));
  unsigned next = 3;
  for (std::size_t i = 0; i < orders->keep_count; ++i) {
    const int fd = orders->keep[i];
    if (!close_between(next, static_cast<unsigned>(fd) - 1)) WARMGATE_TRY(kClose, -1);
    WARMGATE_TRY(kClose, syscall(SYS_fcntl, fd, F_SETFD, 0));
    next = static_cast<unsigned>(fd) + 1;
  }
  if (!close_between(next, ~0u)) WARMGATE_TRY(kClose, -1);
  if (orders->cwd != nullptr) WARMGATE_TRY(kFolder, syscall(SYS_chdir, orders->cwd));
  // exec resets handlers but keeps what is ignored.
  for (int signal = 1; signal <= 64; ++signal) {
    syscall(SYS_rt_sigaction, signal, &kStandard, nullptr, sizeof(unsigned long));
  }
  const unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
  // Last: the kernel counts what we share with the parent against it.
  if (orders->limited) {
    WARMGATE_TRY(kLimit, syscall(SYS_prlimit64, 0, RLIMIT_AS, &orders->limit, nullptr));
  }
  WARMGATE_TRY(kExec, syscall(SYS_execve, orders->program, orders->argv, orders->env));
  return 127;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void fail(int error, const LaunchRequest& request, const std::string& what) {
  throw std::system_error(
      error, std::generic_category(),
      "cannot start " + (request.argv.empty() ? "" : request.argv[0]) + ": " + what);
}

constexpr std::size_t kStackBytes = 64 * 1024;

}  // namespace

std::string find_program(const std::string& name, const std::string& path) {
  if (name.empty() || name.find('/') != std::string::npos) return name;
  const std::string folders = path.empty() ? "/bin:/usr/bin" : path;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string folder = folders.substr(at, end - at);
    const std::string full = (folder.empty() ? "." : folder) + "/" + name;
    struct stat info {};
    if (::stat(full.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(full.c_str(), X_OK) == 0) {
      return full;
    }
    at = end + 1;
  }
  return name;
}

std::vector<std::string> inherited_environment(const std::map<std::string, std::string>& over,
                                               const std::vector<std::string>& without) {
  std::map<std::string, std::string> env;
  for (char** at = ::environ; at != nullptr && *at != nullptr; ++at) {
    const std::string entry = *at;
    const std::size_t equal = entry.find('=');
    if (equal != std::string::npos) env[entry.substr(0, equal)] = entry.substr(equal + 1);
  }
  for (const auto& [name, value] : over) env[name] = value;
  for (const std::string& name : without) env.erase(name);
  std::vector<std::string> out;
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

Launched launch(const LaunchRequest& request) {
  if (request.argv.empty()) fail(EINVAL, request, "no program given");
  std::string path;
  for (const std::string& entry : request.env) {
    if (entry.rfind("PATH=", 0) == 0) path = entry.substr(5);
  }
  const std::string program = find_program(request.argv[0], path);
  // Without a slash execve would take a file of the working folder, which PATH did not name.
  if (program.find('/') == std::string::npos) fail(ENOENT, request, "not found in PATH");
  std::vector<char*> argv = pointers(request.argv), env = pointers(request.env);
  std::vector<int> keep = request.keep_fds;
  std::sort(keep.begin(), keep.end());
  keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
  if (!keep.empty() && keep.front() < 3) fail(EINVAL, request, "an inherited descriptor below 3");

  Orders orders;
  orders.program = program.c_str();
  orders.argv = argv.data();
  orders.env = env.data();
  orders.cwd = request.cwd.empty() ? nullptr : request.cwd.c_str();
  orders.stdio[0] = request.stdin_fd;
  orders.stdio[1] = request.stdout_fd;
  orders.stdio[2] = request.stderr_fd;
  orders.keep = keep.data();
  orders.keep_count = keep.size();
  orders.parent = ::getpid();
  if (request.address_space_bytes) {
    orders.limited = true;
    orders.limit.rlim_cur = orders.limit.rlim_max =
        static_cast<rlim_t>(std::max<std::int64_t>(*request.address_space_bytes, 0));
  }

  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) fail(errno, request, "no memory for the child's stack");
  // No handler of ours may run in the child while it shares our memory.
  unsigned long all = ~0ul, before = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  int pidfd = -1;
  const pid_t pid = ::clone(child_main, static_cast<char*>(stack) + kStackBytes,
                            CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &orders, &pidfd);
  const int clone_error = errno;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  ::munmap(stack, kStackBytes);
  if (pid < 0) fail(clone_error, request, text(Step::kNone));
  Launched launched{pid, Fd(pidfd)};
  if (orders.failed != Step::kNone) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    fail(orders.error, request,
         orders.failed == Step::kFolder ? "working folder " + request.cwd : text(orders.failed));
  }
  return launched;
}

namespace {

Fd lifted(int fd) {
  if (fd < 0 || fd >= 3) return Fd(fd);
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  ::close(fd);
  return Fd(high);
}

}  // namespace

Pipe make_pipe(int wish_bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  Pipe pipe{lifted(ends[0]), lifted(ends[1])};
  if (!pipe.read.valid() || !pipe.write.valid()) {
    throw std::system_error(EMFILE, std::generic_category(), "cannot make a pipe");
  }
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  // More than the kernel's 64 KiB saves wake-ups; where the user's quota is used up it stays so.
  if (wish_bytes > 0) ::fcntl(pipe.write.get(), F_SETPIPE_SZ, wish_bytes);
  return pipe;
}

Fd open_high(const char* path, int flags) {
  Fd fd = lifted(::open(path, flags | O_CLOEXEC));
  if (!fd.valid()) {
    throw std::system_error(errno, std::generic_category(), std::string("cannot open ") + path);
  }
  return fd;
}

}  // namespace warmgate::target
