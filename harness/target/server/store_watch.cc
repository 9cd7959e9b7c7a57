#include "harness/target/server/store_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "harness/target/fd.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;

// A folder that changed so shortly before its scan may change again with the same time stamp (the
// kernel's clock for them ticks every 1 to 10 ms; some network file systems count whole seconds).
constexpr std::int64_t kRecent = 1'100'000'000;

std::int64_t ns(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

std::int64_t wall_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return ns(now);
}

// Inodes are used again at once, so a folder that became a file may have its number.
std::uint64_t identity(std::string_view name, std::uint64_t inode, unsigned type) {
  return std::hash<std::string_view>()(name) ^ ((inode * 16 + type) * 0x9e3779b97f4a7c15ull);
}

}  // namespace

StoreWatch::StoreWatch(fs::path root, std::vector<fs::path> skip, std::size_t most)
    : root_(std::move(root)), skip_(std::move(skip)), most_(most) {}

void StoreWatch::begin() { enter({""}, {}, false); }

void StoreWatch::enter(std::vector<std::string> queue, const Fresh& fresh, bool after_look) {
  while (!queue.empty()) {
    const std::string path = std::move(queue.back());
    queue.pop_back();
    Folder& folder = folders_[path];
    std::vector<std::string> found;
    if (!scan(path, folder, fresh, after_look, found)) {
      known_ -= folder.entries.size();
      folders_.erase(path);
    }
    for (std::string& each : found) queue.push_back(std::move(each));
  }
}

void StoreWatch::look(const std::function<void(const FreshFile&)>& fresh) {
  const std::int64_t now = wall_ns();
  std::vector<std::string> gone, changed;
  for (auto& [path, folder] : folders_) {
    struct stat info {};
    const fs::path full = path.empty() ? root_ : root_ / path;
    // The root may be a link, what is below it may not.
    const int failed = path.empty() ? ::stat(full.c_str(), &info) : ::lstat(full.c_str(), &info);
    if (failed != 0 || !S_ISDIR(info.st_mode)) {
      gone.push_back(path);
    } else if (ns(info.st_mtim) != folder.modified_ns || now - folder.modified_ns < kRecent) {
      changed.push_back(path);
    }
  }
  for (const std::string& path : gone) {
    known_ -= folders_[path].entries.size();
    folders_.erase(path);
  }
  if (folders_.count("") == 0) {
    enter({""}, fresh, true);  // it may have appeared
    return;
  }
  for (const std::string& path : changed) {
    std::vector<std::string> found;
    const auto it = folders_.find(path);
    if (it == folders_.end()) continue;
    if (!scan(path, it->second, fresh, true, found)) {
      known_ -= it->second.entries.size();
      folders_.erase(it);
    }
    // A folder that is new is new with all that is in it.
    enter(std::move(found), fresh, true);
  }
}

bool StoreWatch::scan(const std::string& path, Folder& folder, const Fresh& fresh, bool after_look,
                      std::vector<std::string>& found) {
  const fs::path full = path.empty() ? root_ : root_ / path;
  if (std::find(skip_.begin(), skip_.end(), full) != skip_.end()) return false;
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (path.empty() ? 0 : O_NOFOLLOW);
  const int fd = ::open(full.c_str(), flags);
  struct stat own {};
  if (fd < 0 || ::fstat(fd, &own) != 0) {
    if (fd >= 0) ::close(fd);
    return false;
  }
  DIR* dir = ::fdopendir(fd);
  if (dir == nullptr) {
    ::close(fd);
    return false;
  }
  // Before the scan: what comes during it is found by the next look.
  folder.modified_ns = ns(own.st_mtim);
  std::unordered_set<std::uint64_t> now;
  const std::string prefix = path.empty() ? "" : path + "/";
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::uint64_t id = identity(name, entry->d_ino, entry->d_type);
    if (folder.entries.count(id) != 0) {
      now.insert(id);
      continue;
    }
    if (known_ + now.size() >= most_ + folder.entries.size()) {
      cut_ = true;
      break;
    }
    now.insert(id);
    // An inventory needs no more than which of them are folders.
    if (!fresh && entry->d_type != DT_UNKNOWN) {
      if (entry->d_type == DT_DIR) found.push_back(prefix + std::string(name));
      continue;
    }
    struct stat info {};
    if (::fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      found.push_back(prefix + std::string(name));
    } else if (fresh) {
      const bool file = S_ISREG(info.st_mode);
      fresh({prefix + std::string(name), ns(info.st_ctim),
             file ? static_cast<std::uint64_t>(info.st_size) : 0, after_look});
    }
  }
  ::closedir(dir);
  known_ += now.size();
  known_ -= folder.entries.size();
  folder.entries = std::move(now);
  return true;
}

}  // namespace warmgate::target
