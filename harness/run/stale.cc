#include "harness/run/stale.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace warmgate::run {

namespace {

constexpr const char* kPrefix = "warmgate-";
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostDeep = 64;

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> out;
  // A descriptor of its own: fdopendir() takes over the one it is given.
  const int copy = ::openat(folder, ".", kFolder);
  DIR* dir = copy < 0 ? nullptr : ::fdopendir(copy);
  if (dir == nullptr) {
    if (copy >= 0) ::close(copy);
    return out;
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") out.push_back(name);
  }
  ::closedir(dir);
  return out;
}

// Everything below an open folder but `spare`. By descriptors, so that nobody who swaps a folder
// for a link leads us anywhere.
void empty(int folder, dev_t device, int depth, const std::string& spare = "") {
  for (const std::string& name : names_in(folder)) {
    if (name == spare) continue;
    if (::unlinkat(folder, name.c_str(), 0) == 0 || depth >= kMostDeep) continue;
    const UniqueFd below(::openat(folder, name.c_str(), kFolder));
    struct stat info {};
    if (!below.valid() || ::fstat(below.get(), &info) != 0 || info.st_dev != device) continue;
    empty(below.get(), device, depth + 1);
    ::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
  }
}

bool remove_if_stale(int root, const std::string& name) {
  const UniqueFd folder(::openat(root, name.c_str(), kFolder));
  struct stat info {};
  if (!folder.valid() || ::fstat(folder.get(), &info) != 0) return false;
  if (info.st_uid != ::geteuid() || (info.st_mode & 0777) != 0700) return false;
  const UniqueFd owner(
      ::openat(folder.get(), kOwnerFile, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat mark {};
  if (!owner.valid() || ::fstat(owner.get(), &mark) != 0 || !S_ISREG(mark.st_mode)) return false;
  if (mark.st_uid != ::geteuid() || ::flock(owner.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // The mark goes last: whoever is interrupted here leaves a folder that the next one finds.
  empty(folder.get(), info.st_dev, 0, kOwnerFile);
  ::unlinkat(folder.get(), kOwnerFile, 0);
  return ::unlinkat(root, name.c_str(), AT_REMOVEDIR) == 0;
}

}  // namespace

UniqueFd own(const std::filesystem::path& folder) {
  // Locked before it has the name that others look for.
  const std::filesystem::path made = folder / (std::string(kOwnerFile) + ".new");
  UniqueFd fd(::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::rename(made.c_str(), (folder / kOwnerFile).c_str()) != 0)
    return UniqueFd();
  return fd;
}

int sweep_stale(const std::filesystem::path& root) {
  const UniqueFd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return 0;
  int gone = 0;
  for (const std::string& name : names_in(folder.get())) {
    if (name.rfind(kPrefix, 0) == 0 && remove_if_stale(folder.get(), name)) ++gone;
  }
  return gone;
}

}  // namespace warmgate::run
