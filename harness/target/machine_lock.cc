#include "harness/target/machine_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>

namespace warmgate::target {

namespace fs = std::filesystem;

namespace {

constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
// Bytes of a note: locked while its owner lives, and while it has not had its turn.
constexpr off_t kLife = 0, kTurn = 1;
constexpr std::size_t kMostText = 300;

std::system_error failure(int error, const std::string& what) {
  return {error, std::generic_category(), what};
}

// Refuses what another user could have put in the way in a shared folder.
Fd open_ours(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0600));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    throw failure(errno, "cannot open " + path.string());
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || info.st_nlink != 1) {
    throw failure(EPERM, path.string() + " is not a file of this user's alone");
  }
  // Whoever may open a lock file may hold it.
  if ((info.st_mode & 077) != 0 && ::fchmod(fd.get(), 0600) != 0) {
    throw failure(errno, "cannot protect " + path.string());
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

// Locks one byte of the open file (not of the process), if it is free.
bool lock_byte(const Fd& fd, off_t byte, short type = F_WRLCK) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0;
}

// Is it held by somebody? A file that cannot be asked is not.
bool byte_is_held(const Fd& fd, off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::string read_all(const Fd& fd) {
  char text[kMostText];
  const ssize_t n = fd.valid() ? ::pread(fd.get(), text, sizeof text, 0) : -1;
  return n <= 0 ? std::string() : std::string(text, static_cast<std::size_t>(n));
}

void write_all(const Fd& fd, const std::string& text) {
  const std::string_view part = std::string_view(text).substr(0, kMostText);
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), part.data(), part.size(), 0) < 0) {
    // A note without words still says who.
  }
}

std::string note_prefix(const fs::path& lock) { return lock.filename().string() + "."; }

bool is_note(const std::string& name, const std::string& prefix) {
  return name.size() > prefix.size() && name.size() < 200 && name.rfind(prefix, 0) == 0 &&
         name.find_first_not_of("0123456789.", prefix.size()) == std::string::npos;
}

// The others that have notes: those that hold the lock, else those that wait. Notes of the dead are
// removed.
std::string others(const fs::path& lock, const fs::path& own) {
  std::string holding, waiting;
  std::error_code failed;
  const std::string prefix = note_prefix(lock);
  for (fs::directory_iterator it(lock.parent_path(), failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename();
    if (!is_note(name, prefix) || it->path() == own) continue;
    const Fd fd(::open(it->path().c_str(), O_RDWR | kFlags));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (!byte_is_held(fd, kLife)) {
      // Between its creation and its lock a note is a moment old.
      if (info.st_uid == ::geteuid() && std::time(nullptr) - info.st_mtime > 2)
        ::unlink(it->path().c_str());
      continue;
    }
    const std::string pid =
        name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size());
    std::string& list = byte_is_held(fd, kTurn) ? waiting : holding;
    list += (list.empty() ? "pid " : "; pid ") + pid + ", " + read_all(fd);
  }
  if (!holding.empty()) return holding;
  return waiting.empty() ? "a process that left no note" : waiting;
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

void MachineLock::sweep(const fs::path& folder) {
  try {
    others(file(folder), {});
  } catch (const std::exception&) {
    // Somebody else will.
  }
}

// Tries again until it works, in steps that a cancel cuts short: locks of files have no wait with a
// deadline.
class MachineLock::Wait {
 public:
  Wait(const CancelToken& cancel, std::chrono::milliseconds timeout, std::function<void()> on_wait)
      : cancel_(cancel), end_(Clock::now() + timeout), on_wait_(std::move(on_wait)) {}

  template <typename F>
  bool until(F&& works) {
    while (!works()) {
      const auto now = Clock::now();
      if (now >= said_) {
        on_wait_();
        said_ = now + std::chrono::seconds(5);
      }
      if (cancel_.cancelled() || now >= end_) return false;
      pollfd wake{cancel_.fd(), POLLIN, 0};
      ::poll(&wake, 1, 20);
    }
    return true;
  }
  static bool flocked(const Fd& fd, int operation) {
    if (::flock(fd.get(), operation | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    throw failure(errno, "cannot lock the machine");
  }

 private:
  using Clock = std::chrono::steady_clock;
  const CancelToken& cancel_;
  Clock::time_point end_, said_{};
  std::function<void()> on_wait_;
};

// Leaves a note and learns who came before. Without room for a note it works all the same, only not
// in turn.
void MachineLock::arrive(Wait& wait, const fs::path& path, const std::string& text,
                         std::string& before) {
  static std::atomic<unsigned> counter{0};
  const Fd gate = open_ours(fs::path(path).replace_extension(".gate"));
  if (!wait.until([&] { return Wait::flocked(gate, LOCK_EX); })) return;
  before = read_all(gate);
  if (!is_note(before, note_prefix(path))) before.clear();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  // The time makes it unique where pids come again: a note of the same name would wait for us.
  const fs::path note = path.string() + "." + std::to_string(::getpid()) + "." +
                        std::to_string(counter++) + "." +
                        std::to_string(std::chrono::nanoseconds(now).count());
  Fd fd(::open(note.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, 0600));
  if (fd.valid() && lock_byte(fd, kLife) && lock_byte(fd, kTurn)) {
    write_all(fd, text);
    write_all(gate, note.filename().string());
    note_ = note;
    note_fd_ = std::move(fd);
  } else if (fd.valid()) {
    ::unlink(note.c_str());
  }
}

bool MachineLock::take(Wait& wait, Mode mode, const fs::path& path, const std::string& before) {
  Fd fd = open_ours(path);
  if (!before.empty()) {
    const Fd other(::open((path.parent_path() / before).c_str(), O_RDWR | kFlags));
    if (other.valid() && !wait.until([&] { return !byte_is_held(other, kTurn); })) return false;
  }
  const int operation = mode == Mode::kExclusive ? LOCK_EX : LOCK_SH;
  if (!wait.until([&] { return Wait::flocked(fd, operation); })) return false;
  if (note_fd_.valid()) lock_byte(note_fd_, kTurn, F_UNLCK);  // the next one's turn
  fd_ = std::move(fd);
  return true;
}

MachineLock::MachineLock(Mode mode, const std::string& what, const CancelToken& cancel,
                         std::chrono::milliseconds timeout,
                         const std::function<void(const std::string&)>& on_wait,
                         const fs::path& folder) {
  const fs::path path = file(folder);
  Wait wait(cancel, timeout, [&] {
    waited_for_ = others(path, note_);
    if (on_wait) on_wait(waited_for_);
  });
  const std::string text = std::string(mode == Mode::kExclusive ? "exclusive" : "shared") +
                           ", since " + utc_now() + ": " + what.substr(0, 200);
  std::string before;
  arrive(wait, path, text, before);
  if (take(wait, mode, path, before)) return;
  note_fd_.reset();
  if (!note_.empty()) ::unlink(note_.c_str());
  note_.clear();
}

MachineLock::~MachineLock() {
  if (fd_.valid() && !note_.empty()) ::unlink(note_.c_str());
}

}  // namespace warmgate::target
