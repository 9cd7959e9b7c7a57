#include "harness/run/run_dir.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "harness/run/stale.h"

namespace warmgate::run {

namespace fs = std::filesystem;

fs::path temp_root() {
  const char* dir = std::getenv("TMPDIR");
  // Workers run elsewhere, so that a relative folder would be another one to them.
  if (dir != nullptr && *dir != '\0' && *dir != '/') return fs::absolute(dir);
  return dir != nullptr && *dir != '\0' ? fs::path(dir) : fs::path("/tmp");
}

RunDir::RunDir(const std::string& label, bool keep) : keep_(keep) {
  const char* wish = std::getenv("WARMGATE_KEEP_RUNS");
  if (wish != nullptr && std::strcmp(wish, "1") == 0) keep_ = true;
  std::string pattern = (temp_root() / ("warmgate-" + label + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make a folder for a run under " + temp_root().string());
  }
  path_ = pattern;
  if (!keep_) owner_ = own(path_);
}

RunDir::RunDir(RunDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), keep_(other.keep_), owner_(std::move(other.owner_)) {}

RunDir::~RunDir() {
  if (path_.empty() || keep_) return;
  // The usual contents at once; looking for others costs as much as a short run's verdict.
  for (const char* name : {"events", "tmp"}) ::rmdir((path_ / name).c_str());
  for (const char* name : {"rank0.json", kOwnerFile}) ::unlink((path_ / name).c_str());
  if (::rmdir(path_.c_str()) == 0) return;
  std::error_code ignored;  // a folder that cannot be removed is no reason to lose a verdict
  fs::remove_all(path_, ignored);
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}
UniqueFd::UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

}  // namespace warmgate::run
