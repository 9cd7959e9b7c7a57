#include "harness/explain/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace warmgate::explain {
namespace {

struct Format {
  std::string_view magic;
  const char* name;
  std::array<const char*, 4> argv;
};

// The limits are the programs' own: a frame that wants a larger window is refused by them.
constexpr std::array<Format, 4> kFormats = {{
    {"\x1f\x8b", "gzip", {"gzip", "-dc", nullptr, nullptr}},
    {"\x28\xb5\x2f\xfd", "zstd", {"zstd", "-dcq", "-M128MB", nullptr}},
    {{"\xfd\x37zXZ\0", 6}, "xz", {"xz", "-dc", "--memlimit-decompress=256MiB", nullptr}},
    {"BZh", "bzip2", {"bzip2", "-dc", nullptr, nullptr}},
}};

constexpr std::size_t kMagicBytes = 6;

std::string why(int error) { return std::strerror(error); }

// Of a shell's <(…) and of redirections somebody is, or was, at the other end.
bool is_own_descriptor(const std::string& path) {
  return path.rfind("/dev/fd/", 0) == 0 || path.rfind("/proc/self/fd/", 0) == 0 ||
         path == "/dev/stdin";
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

Input::Input(const std::string& name) : name_(name == "-" ? "stdin" : name), path_(name) {
  try {
    open_file();
    recognise();
  } catch (...) {
    close_fd(file_);
    throw;
  }
}

Input::~Input() {
  close_fd(file_);
  close_fd(to_unpacker_);
  close_fd(from_unpacker_);
  close_fd(complaints_);
  if (unpacker_ > 0) {
    // Only ever one that has not been waited for, so the number is still its own.
    ::kill(unpacker_, SIGKILL);
    while (::waitpid(unpacker_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Input::open_file() {
  const bool standard = path_ == "-";
  // Without waiting: a pipe that has no writer, or a device, must not hold us.
  file_ = standard ? ::fcntl(0, F_DUPFD_CLOEXEC, 3)
                   : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file_ < 0) throw InputError(fmt::format("{}: cannot be read: {}", name_, why(errno)));
  struct stat info {};
  if (::fstat(file_, &info) != 0)
    throw InputError(fmt::format("{}: cannot be read: {}", name_, why(errno)));
  if (S_ISDIR(info.st_mode))
    throw InputError(fmt::format("{}: a folder; name the logs in it, e.g. {}/*.log", name_, name_));
  const bool pipe = S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode);
  if (pipe && !standard && !is_own_descriptor(path_))
    throw InputError(
        fmt::format("{}: a named pipe, which may never end; `warmgate explain - < {}` waits for it",
                    name_, name_));
  const bool terminal = S_ISCHR(info.st_mode) && ::isatty(file_) == 1;
  if (!S_ISREG(info.st_mode) && !pipe && !terminal)
    throw InputError(fmt::format("{}: a device, not a log", name_));
  if (!standard) {
    const int flags = ::fcntl(file_, F_GETFL);
    if (flags >= 0) ::fcntl(file_, F_SETFL, flags & ~O_NONBLOCK);
  }
}

void Input::recognise() {
  // As much as decides; a terminal or pipe may deliver it in pieces.
  char buffer[512];
  while (head_.size() < sizeof buffer) {
    const std::size_t got = read_plain(buffer, sizeof buffer - head_.size());
    if (got == 0) break;
    head_.append(buffer, got);
    // Text is recognised by its first bytes; waiting for more would delay a live log for nothing.
    if (head_.size() >= kMagicBytes) break;
  }
  if (head_.rfind("PK\x03\x04", 0) == 0)
    throw InputError(fmt::format(
        "{}: a zip archive, which may hold many logs; unpack it and name the one of the server",
        name_));
  for (const Format& format : kFormats) {
    if (head_.rfind(format.magic, 0) != 0) continue;
    if (format.magic == "BZh" && head_.find("1A") != 4) continue;  // text may begin so
    format_ = format.name;
    start_unpacking(format.argv.data());
    return;
  }
}

void Input::start_unpacking(const char* const* argv) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) throw InputError(name_ + ": no pipe: " + why(errno));
  if (::pipe2(out, O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    throw InputError(name_ + ": no pipe: " + why(errno));
  }
  to_unpacker_ = in[1];
  from_unpacker_ = out[0];
  complaints_ = ::memfd_create("warmgate-unpacker", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  if (complaints_ >= 0) posix_spawn_file_actions_adddup2(&actions, complaints_, 2);
  // Nothing of ours but the way to the program: GZIP and ZSTD_CLEVEL change what these do.
  const char* path = std::getenv("PATH");
  std::string path_entry = "PATH=" + std::string(path ? path : "/usr/local/bin:/usr/bin:/bin");
  std::string locale = "LC_ALL=C";
  char* environment[] = {path_entry.data(), locale.data(), nullptr};
  const int error = ::posix_spawnp(&unpacker_, argv[0], &actions, nullptr,
                                   const_cast<char* const*>(argv), environment);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  if (error != 0) {
    unpacker_ = -1;
    throw InputError(fmt::format("{}: packed with {}, and the program {} cannot be started: {}",
                                 name_, format_, argv[0], why(error)));
  }
  ::fcntl(to_unpacker_, F_SETFL, ::fcntl(to_unpacker_, F_GETFL) | O_NONBLOCK);
}

std::size_t Input::read_plain(char* buffer, std::size_t size) {
  if (file_done_) return 0;
  for (;;) {
    const ssize_t got = ::read(file_, buffer, size);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) {
      file_done_ = true;
      return 0;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {  // somebody else made this description non-blocking
      pollfd wait{file_, POLLIN, 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    throw InputError(fmt::format("{}: cannot be read on: {}", name_, why(errno)));
  }
}

// Hands packed bytes on until the pipe is full or the file has no more for now.
void Input::push_packed() {
  if (head_.empty() && !file_done_) {
    char buffer[65536];
    head_.assign(buffer, read_plain(buffer, sizeof buffer));
  }
  if (!head_.empty()) {
    const ssize_t sent = ::write(to_unpacker_, head_.data(), head_.size());
    if (sent > 0) {
      head_.erase(0, static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      // It has gone away; its exit code says why.
      head_.clear();
      file_done_ = true;
    }
  }
  if (head_.empty() && file_done_) close_fd(to_unpacker_);
}

std::size_t Input::read_unpacked(char* buffer, std::size_t size) {
  while (from_unpacker_ >= 0) {
    pollfd fds[2] = {{from_unpacker_, POLLIN, 0}, {to_unpacker_, POLLOUT, 0}};
    if (::poll(fds, to_unpacker_ >= 0 ? 2 : 1, -1) < 0) {
      if (errno == EINTR) continue;
      throw InputError(fmt::format("{}: {}", name_, why(errno)));
    }
    if (fds[0].revents != 0) {
      const ssize_t got = ::read(from_unpacker_, buffer, size);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      end_unpacking();
      return 0;
    }
    if (to_unpacker_ >= 0 && fds[1].revents != 0) push_packed();
  }
  return 0;
}

void Input::end_unpacking() {
  close_fd(from_unpacker_);
  close_fd(to_unpacker_);
  int status = 0;
  while (::waitpid(unpacker_, &status, 0) < 0 && errno == EINTR) {
  }
  unpacker_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  char said[400];
  const ssize_t got = complaints_ >= 0 ? ::pread(complaints_, said, sizeof said, 0) : 0;
  std::string words(said, got > 0 ? static_cast<std::size_t>(got) : 0);
  words.erase(0, std::min(words.find_first_not_of('\n'), words.size()));
  words.resize(std::min(words.find('\n'), words.size()));
  if (words.empty())
    words = WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                                : fmt::format("exit code {}", WEXITSTATUS(status));
  trouble_ = fmt::format("the archive is damaged or cut off after {} bytes of log ({})", bytes_,
                         words.rfind(format_, 0) == 0 ? words : format_ + ": " + words);
}

std::size_t Input::read(char* buffer, std::size_t size) {
  std::size_t got = 0;
  if (!format_.empty()) {
    got = read_unpacked(buffer, size);
  } else if (!head_.empty()) {
    got = std::min(size, head_.size());
    std::memcpy(buffer, head_.data(), got);
    head_.erase(0, got);
  } else {
    got = read_plain(buffer, size);
  }
  bytes_ += got;
  return got;
}

}  // namespace warmgate::explain
