// Writing the model folder.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "harness/plan/shrink/problem.h"
#include "harness/plan/shrink/shrink.h"

namespace warmgate::plan::shrink {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  Complaints complaints(path.string());
  complaints.add("", why);
  complaints.throw_if_any();
  throw std::logic_error("unreachable");
}

[[noreturn]] void fail(const fs::path& path) {
  throw std::runtime_error(fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

// Beside the name, then renamed over it: a link of that name is replaced, not followed, so that a
// cache of downloads (folders of links) is never written to.
void put(const fs::path& path, const std::string& text) {
  const fs::path beside = path.string() + fmt::format(".new.{}", ::getpid());
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) fail(beside);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      ::close(fd);
      ::unlink(beside.c_str());
      errno = error;
      fail(beside);
    }
    done += static_cast<std::size_t>(wrote);
  }
  if (::close(fd) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    errno = error;
    fail(path);
  }
}

}  // namespace

void write_folder(const Result& result, const Request& request) {
  const fs::path& out = request.out;
  std::error_code error;
  if (!request.scenario.empty() && fs::exists(request.scenario, error) && !request.force)
    refuse(request.scenario, "is there already; --force replaces it");
  if (fs::exists(out, error) && !fs::is_directory(out, error))
    refuse(out, "is there and no folder");
  const fs::path home = request.config.has_parent_path() ? request.config.parent_path() : ".";
  if (fs::is_directory(out, error)) {
    if (fs::equivalent(out, home, error))
      refuse(out, "is the folder of the config itself, which would be overwritten");
    if (!fs::is_empty(out, error) && !request.force)
      refuse(out, "is not empty; --force writes into it");
    if (error) refuse(out, error.message());
  } else {
    fs::create_directories(out, error);
    if (error) throw std::runtime_error(fmt::format("{}: {}", out.string(), error.message()));
  }
  for (const auto& [name, text] : result.files) {
    if (name != "config.json") put(out / name, text);
  }
  put(out / "config.json", result.files.at("config.json"));
  if (!request.scenario.empty()) put(request.scenario, result.scenario);
}

}  // namespace warmgate::plan::shrink
