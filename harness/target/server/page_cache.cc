#include "harness/target/server/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "harness/target/fd.h"
#include "harness/target/server/tree.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 20000;
constexpr std::uint64_t kWindow = 1ull << 30;  // mapped at once

void each_file(const std::vector<fs::path>& paths,
               const std::function<void(int fd, std::uint64_t bytes)>& use) {
  const auto one = [&](const fs::path& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
    if (info.st_size > 0) use(fd.get(), static_cast<std::uint64_t>(info.st_size));
  };
  for (const fs::path& path : paths) {
    std::error_code ec;
    if (!fs::is_directory(path, ec)) {
      one(path);
      continue;
    }
    // Model folders of hubs hold links to their files, so links count here.
    walk_tree(path, kMaxFiles, 30, [&](const TreeEntry& entry) {
      if (!entry.folder) one(path / entry.path);
    });
  }
}

// mincore(2) says "resident" for every page of a file that the caller neither owns nor may write.
bool told(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  if (::geteuid() == 0 || info.st_uid == ::geteuid()) return true;
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  return ::access(self.c_str(), W_OK) == 0;
}

std::uint64_t resident_bytes(int fd, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t out = 0;
  std::vector<unsigned char> pages;
  for (std::uint64_t at = 0; at < bytes; at += kWindow) {
    const std::uint64_t size = std::min(kWindow, bytes - at);
    void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(at));
    if (map == MAP_FAILED) return out;
    pages.resize((size + page - 1) / page);
    if (::mincore(map, size, pages.data()) == 0) {
      for (std::size_t i = 0; i < pages.size(); ++i)
        if ((pages[i] & 1) != 0) out += std::min(page, size - i * page);
    }
    ::munmap(map, size);
  }
  return out;
}

}  // namespace

PageCache look_at_page_cache(const std::vector<fs::path>& paths) {
  PageCache out;
  each_file(paths, [&](int fd, std::uint64_t bytes) {
    ++out.files;
    out.bytes += bytes;
    if (told(fd)) {
      out.resident += resident_bytes(fd, bytes);
    } else {
      out.unknown += bytes;
    }
  });
  return out;
}

void evict_from_page_cache(const std::vector<fs::path>& paths) {
  each_file(paths, [](int fd, std::uint64_t) { ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); });
}

void read_into_page_cache(const std::vector<fs::path>& paths) {
  std::vector<char> buffer(1 << 20);
  each_file(paths, [&](int fd, std::uint64_t) {
    while (::read(fd, buffer.data(), buffer.size()) > 0) {
    }
  });
}

}  // namespace warmgate::target
