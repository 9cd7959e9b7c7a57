#include "harness/engine/crash.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace warmgate::engine {

namespace {

std::atomic<int> crash_fd{-1};
std::atomic<int> crash_rank{0};
std::atomic<const char*> crash_phase{""};
alignas(16) char crash_stack[64 * 1024];

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "signal";
  }
}

/// Text into a fixed buffer; what does not fit is left out.
class Writer {
 public:
  Writer& text(const char* s) {
    while (*s != '\0' && size_ < sizeof buffer_) buffer_[size_++] = *s++;
    return *this;
  }
  Writer& number(std::int64_t value) {
    char digits[24];
    int n = 0;
    const bool negative = value < 0;
    auto rest =
        negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do {
      digits[n++] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (negative) digits[n++] = '-';
    while (n > 0 && size_ < sizeof buffer_) buffer_[size_++] = digits[--n];
    return *this;
  }
  void to(int fd) const {
    std::size_t done = 0;
    while (done < size_) {
      const ssize_t n = ::write(fd, buffer_ + done, size_ - done);
      if (n <= 0) return;
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  char buffer_[512];
  std::size_t size_ = 0;
};

void on_crash(int signal, siginfo_t*, void*) {
  const int fd = crash_fd.exchange(-1);  // one line, even if writing it crashes
  if (fd >= 0) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    Writer line;
    line.text("{\"ev\":\"fault\",\"type\":\"").text(name_of(signal));
    line.text("\",\"message\":\"signal ").number(signal).text("\",\"stack\":[],\"phase\":\"");
    line.text(crash_phase.load()).text("\",\"t\":");
    line.number(static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
    line.text(",\"rank\":").number(crash_rank.load()).text("}\n").to(fd);
  }
  // The default action is back (SA_RESETHAND); the exit status must name the signal.
  ::raise(signal);
}

}  // namespace

void install_crash_handlers(int fd, int rank) {
  crash_fd = fd;
  crash_rank = rank;
  stack_t stack{};
  stack.ss_sp = crash_stack;
  stack.ss_size = sizeof crash_stack;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    ::sigaction(signal, &action, nullptr);
}

void set_crash_phase(const char* phase) { crash_phase = phase; }

}  // namespace warmgate::engine
