#include "harness/target/server/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <system_error>

#include "harness/target/fd.h"
#include "harness/trace/glob.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;

class Walk {
 public:
  Walk(std::size_t most, double seconds, const std::function<void(const TreeEntry&)>& each)
      : left_(most),
        until_ns_(trace::now_ns() + static_cast<std::int64_t>(seconds * 1e9)),
        each_(each) {}

  bool run(const fs::path& root) {
    const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR;
    folder(fd, "", 0);
    return whole_;
  }

 private:
  // Takes the descriptor.
  void folder(int fd, const std::string& prefix, int depth) {
    DIR* dir = ::fdopendir(fd);
    if (dir == nullptr) {
      ::close(fd);
      whole_ = false;
      return;
    }
    std::vector<std::string> below;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (left_ == 0 || trace::now_ns() > until_ns_) {
        whole_ = false;
        break;
      }
      --left_;
      struct stat info {};
      if (::fstatat(::dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      TreeEntry out;
      out.path = prefix + std::string(name);
      out.folder = S_ISDIR(info.st_mode);
      out.file = S_ISREG(info.st_mode);
      out.bytes = out.file ? static_cast<std::uint64_t>(info.st_size) : 0;
      each_(out);
      if (out.folder) below.emplace_back(name);
    }
    for (const std::string& name : below) {
      if (depth >= kMaxDepth || left_ == 0) {
        whole_ = false;
        break;
      }
      const int child =
          ::openat(::dirfd(dir), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (child >= 0) {
        folder(child, prefix + name + "/", depth + 1);
      } else if (errno != ENOENT) {
        whole_ = false;
      }
    }
    ::closedir(dir);
  }

  std::size_t left_;
  std::int64_t until_ns_;
  const std::function<void(const TreeEntry&)>& each_;
  bool whole_ = true;
};

// Python's tempfile: tmp and eight letters, digits or underscores.
bool python_temporary(std::string_view name) {
  return name.size() == 11 && name.starts_with("tmp") &&
         std::all_of(name.begin() + 3, name.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
         });
}

bool unfinished(std::string_view name) {
  return name.starts_with("tmp.") || name.ends_with(".tmp") || name.ends_with(".lock") ||
         name == "lock" || name.find(".tmp.") != std::string_view::npos || python_temporary(name);
}

}  // namespace

bool walk_tree(const fs::path& root, std::size_t most, double seconds,
               const std::function<void(const TreeEntry&)>& each) {
  return Walk(most, seconds, each).run(root);
}

bool ignored(const std::vector<std::string>& globs, std::string_view path) {
  for (std::string_view rest = path; !rest.empty();) {
    const auto slash = rest.find('/');
    if (unfinished(rest.substr(0, slash))) return true;
    rest = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(globs.begin(), globs.end(), [&](std::string_view glob) {
    if (trace::glob_match(glob, path)) return true;
    if (glob.starts_with("**/")) glob.remove_prefix(3);  // in any folder, and in none
    return trace::glob_match(glob, name) || trace::glob_match(glob, path);
  });
}

TreeCount count_tree(const fs::path& root, const std::vector<std::string>& ignore, std::size_t most,
                     double seconds) {
  TreeCount out;
  out.complete = walk_tree(root, most, seconds, [&](const TreeEntry& entry) {
    ++out.entries;
    if (!entry.file || ignored(ignore, entry.path)) return;
    ++out.files;
    out.bytes += entry.bytes;
  });
  return out;
}

void copy_tree(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  walk_tree(from, SIZE_MAX, 1e6, [&](const TreeEntry& entry) {
    const fs::path source = from / entry.path, target = to / entry.path;
    std::error_code ec;
    if (entry.folder) {
      fs::create_directory(target, ec);
    } else if (entry.file) {
      fs::copy_file(source, target, fs::copy_options::none, ec);
    } else if (fs::is_symlink(fs::symlink_status(source, ec))) {
      fs::copy_symlink(source, target, ec);
    }
    if (ec && ec != std::errc::no_such_file_or_directory)
      throw fs::filesystem_error("a cache store could not be copied", source, target, ec);
    if (!entry.file) return;
    const auto written = fs::last_write_time(source, ec);
    if (!ec) fs::last_write_time(target, written, ec);
  });
}

}  // namespace warmgate::target
