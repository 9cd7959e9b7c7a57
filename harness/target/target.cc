#include "harness/target/target.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

namespace warmgate::target {

CancelToken::CancelToken() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

CancelToken::~CancelToken() { ::close(fd_); }

void CancelToken::cancel() {
  const int before = errno;  // called from signal handlers
  cancelled_.store(true);
  const std::uint64_t one = 1;
  if (::write(fd_, &one, sizeof one) < 0) {
    // Full: it is readable already.
  }
  errno = before;
}

std::filesystem::path events_folder(const TargetSpec& spec) { return spec.run_dir / "events"; }

std::string signal_name(int signal) {
  static constexpr const char* names[] = {
      "",          "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
      "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
      "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
      "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};
  if (signal > 0 && signal < static_cast<int>(std::size(names))) return names[signal];
  return "signal " + std::to_string(signal);
}

}  // namespace warmgate::target
