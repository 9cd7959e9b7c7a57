#include "harness/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

namespace warmgate::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

[[noreturn]] void fail(const fs::path& path, int error) {
  std::error_code failed;
  std::string why = std::strerror(error);
  if (const fs::path folder = folder_of(path); error == ENOENT && !fs::exists(folder, failed))
    why = "there is no folder " + folder.string();
  throw std::runtime_error("cannot write " + path.string() + ": " + why);
}

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool is_special(const fs::path& path) {
  struct stat info {};
  // /dev/stdout may lead to a regular file that somebody else has open.
  if (path.string().rfind("/dev/", 0) == 0 || path.string().rfind("/proc/", 0) == 0) return true;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

// The file behind links, so that a rename replaces it and not the link.
fs::path real_path(const fs::path& path) {
  if (is_special(path)) return path;
  fs::path real = path;
  std::error_code ec;
  // By hand, because a link may lead to a file that is not there yet.
  for (int links = 0; links < 40 && fs::is_symlink(real, ec); ++links) {
    const fs::path to = fs::read_symlink(real, ec);
    if (ec) return path;
    real = to.is_absolute() ? to : real.parent_path() / to;
  }
  return real;
}

// A FIFO that nobody reads would keep us waiting for ever; where somebody does, writing waits.
int open_without_waiting(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_NONBLOCK, 0666);
  if (fd < 0 && errno == ENXIO)
    throw std::runtime_error("cannot write " + path.string() + ": nobody reads it");
  if (fd < 0) fail(path, errno);
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

// An empty file beside `path`; its descriptor and name.
int make_temporary(const fs::path& path, std::string& name) {
  name = (folder_of(path) / ("." + path.filename().string() + ".XXXXXX")).string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) fail(path, errno);
  return fd;
}

}  // namespace

void check_writable(const fs::path& path) {
  const fs::path real = real_path(path);
  struct stat info {};
  if (::stat(real.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) fail(path, EISDIR);
  if (is_special(real)) {
    if (::access(real.c_str(), W_OK) != 0) fail(path, errno);
    return;
  }
  std::string name;
  const int fd = make_temporary(real, name);
  ::close(fd);
  ::unlink(name.c_str());
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code ec;
  if (fs::equivalent(a, b, ec) && !ec) return true;
  const auto place = [](const fs::path& path) {
    std::error_code failed;
    const fs::path real = fs::absolute(real_path(path), failed);
    const fs::path canonical = fs::weakly_canonical(real, failed);
    return failed ? real.lexically_normal() : canonical;
  };
  return place(a) == place(b);
}

void write_file(const fs::path& path, std::string_view text) {
  const fs::path real = real_path(path);
  struct stat info {};
  if (::stat(real.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) fail(path, EISDIR);
  if (is_special(real)) {
    const int fd = open_without_waiting(path, O_WRONLY | O_CLOEXEC);
    int error = write_all(fd, text);
    if (::close(fd) != 0 && error == 0) error = errno;
    if (error != 0) fail(path, error);
    return;
  }
  std::string name;
  const int fd = make_temporary(real, name);
  // mkstemp gives 0600; a report is as readable as any new file of this user, or as the old one.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool replaces = ::stat(real.c_str(), &info) == 0;
  (void)::fchmod(fd, replaces ? info.st_mode & 0777 : 0666 & ~mask);
  int error = write_all(fd, text);
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(name.c_str(), real.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(name.c_str());
    fail(path, error);
  }
}

void append_file(const fs::path& path, std::size_t limit,
                 const std::function<std::string(std::size_t)>& text) {
  const int fd = open_without_waiting(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY);
  struct stat info {};
  const bool sized = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const std::size_t used = sized ? static_cast<std::size_t>(info.st_size) : 0;
  // A blank line keeps what is there from running into ours.
  const std::string gap = used > 0 ? "\n\n" : "";
  const std::size_t taken = used + gap.size();
  const std::string more = taken < limit ? text(limit - taken) : "";
  int error = more.empty() ? 0 : write_all(fd, gap + more);
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) fail(path, error);
  if (more.empty())
    throw std::runtime_error("cannot add to " + path.string() + ": it holds " +
                             std::to_string(used) + " of " + std::to_string(limit) + " bytes");
}

}  // namespace warmgate::cli
