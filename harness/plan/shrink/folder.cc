// Writing the model folder.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

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

// Files that come to be together or not at all. Each is written beside its name and renamed over
// it in the end: a link of that name is replaced, not followed, so that a cache of downloads
// (folders of links) is never written to. What was not renamed is removed, and so are the folders
// that were made for it.
class Staged {
 public:
  Staged() = default;
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged() {
    for (const auto& [beside, path] : files_) ::unlink(beside.c_str());
    // Only those that are empty.
    for (auto it = made_.rbegin(); it != made_.rend(); ++it) ::rmdir(it->c_str());
  }

  void make_folder(const fs::path& folder) {
    fs::path whole;
    for (const fs::path& part : folder) {
      whole /= part;
      if (part.empty() || ::mkdir(whole.c_str(), 0777) == 0) {
        if (!part.empty()) made_.push_back(whole);
      } else if (errno != EEXIST) {
        fail(whole);
      }
    }
  }

  void put(const fs::path& path, const std::string& text) {
    const fs::path beside = path.string() + fmt::format(".new.{}", ::getpid());
    ::unlink(beside.c_str());
    const int fd =
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) fail(path);
    files_.emplace_back(beside, path);
    int error = 0;
    for (std::size_t done = 0; done < text.size() && error == 0;) {
      const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
      if (wrote >= 0)
        done += static_cast<std::size_t>(wrote);
      else if (errno != EINTR)
        error = errno;
    }
    if (::close(fd) != 0 && error == 0) error = errno;
    errno = error;
    if (error != 0) fail(path);
  }

  /// In the order in which they were put.
  void commit() {
    while (!files_.empty()) {
      const auto& [beside, path] = files_.front();
      if (::rename(beside.c_str(), path.c_str()) != 0) fail(path);
      files_.erase(files_.begin());
    }
    made_.clear();
  }

 private:
  std::vector<std::pair<fs::path, fs::path>> files_;
  std::vector<fs::path> made_;
};

// What would come to be at one place is refused before anything is written.
void refuse_scenario(const Result& result, const Request& request) {
  const fs::path& file = request.scenario;
  if (file.empty()) return;
  std::error_code error;
  const auto place = [&](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, error), error);
  };
  for (const auto& [name, text] : result.files) {
    if (place(file) == place(request.out / name))
      refuse(file, "is a file of the model's folder; name another for the scenario");
  }
  if (fs::is_directory(file, error)) refuse(file, "is a folder; name a file for the scenario");
  if (fs::exists(file, error) && !request.force)
    refuse(file, "is there already; --force replaces it");
}

}  // namespace

void write_folder(const Result& result, const Request& request) {
  const fs::path& out = request.out;
  std::error_code error;
  refuse_scenario(result, request);
  if (fs::exists(out, error) && !fs::is_directory(out, error))
    refuse(out, "is there and no folder");
  const fs::path home = request.config.has_parent_path() ? request.config.parent_path() : ".";
  if (fs::is_directory(out, error)) {
    if (fs::equivalent(out, home, error))
      refuse(out, "is the folder of the config itself, which would be overwritten");
    if (!fs::is_empty(out, error) && !request.force)
      refuse(out, "is not empty; --force writes into it");
    if (error) refuse(out, error.message());
  }
  fs::path above = out;
  while (!above.empty() && !fs::exists(above, error)) above = above.parent_path();
  if (!above.empty() && !fs::is_directory(above, error))
    refuse(out, fmt::format("cannot be made: {} is no folder", above.string()));
  Staged staged;
  staged.make_folder(out);
  for (const auto& [name, text] : result.files) {
    if (name != "config.json") staged.put(out / name, text);
  }
  if (!request.scenario.empty()) staged.put(request.scenario, result.scenario);
  staged.put(out / "config.json", result.files.at("config.json"));
  staged.commit();
}

}  // namespace warmgate::plan::shrink
