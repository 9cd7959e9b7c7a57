#include "harness/run/artefact/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

#include "harness/run/run_dir.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

// Non-blocking: opening a pipe must not wait for a writer.
UniqueFd open_regular(const fs::path& path, struct stat& info) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return fd;
}

}  // namespace

std::string read_bounded(const fs::path& path, std::size_t most) {
  struct stat info {};
  const UniqueFd fd = open_regular(path, info);
  std::string out;
  if (!fd.valid()) return out;
  out.resize(std::min(most, static_cast<std::size_t>(info.st_size)));
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t n = ::read(fd.get(), out.data() + have, out.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.resize(have);
  return out;
}

std::string sha256_of(const fs::path& path) {
  struct stat info {};
  const UniqueFd fd = open_regular(path, info);
  if (!fd.valid()) return "";
  if (info.st_size == 0) return trace::sha256_hex("");
  const auto size = static_cast<std::size_t>(info.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) return "";
  ::madvise(bytes, size, MADV_SEQUENTIAL);
  const std::string out = trace::sha256_hex({static_cast<const char*>(bytes), size});
  ::munmap(bytes, size);
  return out;
}

void write_whole(const fs::path& path, const std::string& text) {
  const std::string part = path.string() + ".part";
  const auto fail = [&] {
    const int error = errno;
    ::unlink(part.c_str());
    throw std::system_error(error, std::generic_category(), "cannot write " + path.string());
  };
  {
    const UniqueFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid()) fail();
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(fd.get(), text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail();
      at += static_cast<std::size_t>(n);
    }
  }
  if (::rename(part.c_str(), path.c_str()) != 0) fail();
}

std::string listing_hash(const fs::path& root) {
  std::vector<std::string> lines;
  std::error_code failed;
  auto it = fs::recursive_directory_iterator(root, failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    const fs::path& path = it->path();
    if (path.filename() == "__pycache__") {
      it.disable_recursion_pending();
      continue;
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) info = {};  // a link that leads nowhere
    if (S_ISDIR(info.st_mode)) continue;
    lines.push_back(fmt::format("{} {} {}.{}", path.lexically_relative(root).string(), info.st_size,
                                info.st_mtim.tv_sec, info.st_mtim.tv_nsec));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return trace::sha256_hex(all);
}

}  // namespace warmgate::run
