#include "harness/target/machine_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <system_error>
#include <vector>

namespace warmgate::target {

namespace fs = std::filesystem;

namespace {

constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW;

// Refuses what another user could have put in the way in a shared folder.
Fd open_ours(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0600));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot open " + path.string());
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    throw std::system_error(EPERM, std::generic_category(),
                            path.string() + " is not a file of this user");
  }
  return fd;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Each holder leaves a note beside the lock, warmgate-<uid>.lock.<pid>.<n>; notes of processes that
// are gone are stale and removed.
std::string holders(const fs::path& lock) {
  std::string out;
  std::error_code failed;
  const std::string prefix = lock.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(lock.parent_path(), failed)) {
    const std::string name = entry.path().filename();
    if (name.rfind(prefix, 0) != 0) continue;
    int pid = 0;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
    if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) {
      ::unlink(entry.path().c_str());
      continue;
    }
    Fd fd(::open(entry.path().c_str(), O_RDONLY | O_NONBLOCK | kFlags));
    char text[300];
    const ssize_t n = fd.valid() ? ::read(fd.get(), text, sizeof text) : -1;
    if (n <= 0) continue;
    if (!out.empty()) out += "; ";
    out += "pid " + std::to_string(pid) + ", " + std::string(text, static_cast<std::size_t>(n));
  }
  return out.empty() ? "a process that left no note" : out;
}

}  // namespace

fs::path MachineLock::default_folder() {
  const char* wish = std::getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  if (wish != nullptr && *wish == '/' && ::stat(wish, &info) == 0 && S_ISDIR(info.st_mode) &&
      info.st_uid == ::geteuid() && (info.st_mode & 022) == 0 && ::access(wish, W_OK) == 0) {
    return wish;
  }
  return "/tmp";
}

fs::path MachineLock::file(const fs::path& folder) {
  return folder / ("warmgate-" + std::to_string(::geteuid()) + ".lock");
}

namespace {

// Our command line, for whoever waits for us.
std::string command_line() {
  Fd fd(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  char text[200];
  const ssize_t n = fd.valid() ? ::read(fd.get(), text, sizeof text) : -1;
  std::string out(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  std::replace(out.begin(), out.end(), '\0', ' ');
  return out;
}

constexpr std::chrono::hours kAnyTime{24 * 30};

}  // namespace

MachineLock MachineLock::shared(const CancelToken& cancel) {
  return MachineLock(Mode::kShared, command_line(), cancel, kAnyTime);
}

MachineLock MachineLock::exclusive(const CancelToken& cancel) {
  return MachineLock(Mode::kExclusive, command_line(), cancel, kAnyTime);
}

MachineLock::MachineLock(Mode mode, const std::string& what, const CancelToken& cancel,
                         std::chrono::milliseconds timeout,
                         const std::function<void(const std::string&)>& on_wait,
                         const fs::path& folder) {
  static std::atomic<unsigned> counter{0};
  const fs::path path = file(folder);
  const auto end = std::chrono::steady_clock::now() + timeout;
  // flock has no wait with a deadline; who waits has time, so 20 ms steps that a cancel cuts short.
  const auto lock = [&](const Fd& fd, int operation) {
    while (::flock(fd.get(), operation | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        throw std::system_error(errno, std::generic_category(), "cannot lock " + path.string());
      }
      if (waited_for_.empty()) {
        waited_for_ = holders(path);
        if (on_wait) on_wait(waited_for_);
      }
      if (cancel.cancelled() || std::chrono::steady_clock::now() >= end) return false;
      pollfd wake{cancel.fd(), POLLIN, 0};
      ::poll(&wake, 1, 20);
    }
    return true;
  };
  const Fd gate = open_ours(fs::path(path).replace_extension(".gate"));
  Fd fd = open_ours(path);
  if (!lock(gate, LOCK_EX)) return;
  if (!lock(fd, mode == Mode::kExclusive ? LOCK_EX : LOCK_SH)) return;
  const fs::path note =
      path.string() + "." + std::to_string(::getpid()) + "." + std::to_string(counter++);
  // A note is a courtesy: the lock holds without it.
  Fd note_fd(::open(note.c_str(), O_WRONLY | O_CREAT | O_EXCL | kFlags, 0600));
  if (note_fd.valid()) {
    const std::string text = std::string(mode == Mode::kExclusive ? "exclusive" : "shared") +
                             ", since " + utc_now() + ": " + what.substr(0, 200);
    if (::write(note_fd.get(), text.data(), text.size()) > 0) note_ = note;
  }
  fd_ = std::move(fd);
}

MachineLock::~MachineLock() {
  if (fd_.valid() && !note_.empty()) ::unlink(note_.c_str());
}

}  // namespace warmgate::target
