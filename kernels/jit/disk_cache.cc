#include "kernels/jit/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace warmgate::jit {
namespace {

constexpr std::string_view kMagic = "warmgate-kernel/1\n";
constexpr off_t kMaxEntryBytes = off_t{64} << 20;

/// Against damage, not against an adversary: 8 bytes a step, so that a warm start pays 2 us an
/// entry.
std::uint64_t checksum(std::string_view data) {
  std::uint64_t hash = 0x9E3779B97F4A7C15u ^ data.size();
  std::size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + i, 8);
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
    hash ^= hash >> 32;
  }
  for (; i < data.size(); ++i) {
    hash = (hash ^ static_cast<unsigned char>(data[i])) * 0xFF51AFD7ED558CCDu;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Takes `text` up to the next newline off its front; false if there is none.
bool take_line(std::string_view& text, std::string_view& line) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Nothing where there is no file; what is no plain file or cannot be read has no contents.
std::optional<std::string> read_file(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? std::nullopt : std::optional<std::string>("");
  std::string data;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= kMaxEntryBytes) {
    data.resize(static_cast<std::size_t>(info.st_size));
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t n = read(fd, data.data() + done, data.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    data.resize(done);
  }
  close(fd);
  return data;
}

bool write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// magic, checksum of the rest, address, key, verdict, sizes, log, object.
std::string encode(const std::string& address, std::string_view key, const CacheEntry& entry) {
  std::string rest = address + "\n" + std::string(key) + "\n" + (entry.ok ? "ok\n" : "failed\n");
  rest += std::to_string(entry.bytes) + "\n" + std::to_string(entry.log.size()) + "\n" +
          std::to_string(entry.object.size()) + "\n" + entry.log + entry.object;
  return std::string(kMagic) + std::to_string(checksum(rest)) + "\n" + rest;
}

std::optional<CacheEntry> decode(std::string_view data, const std::string& address,
                                 std::string_view key, bool with_object) {
  if (data.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  data.remove_prefix(kMagic.size());
  std::string_view sum, line, verdict;
  std::uint64_t expected = 0;
  if (!take_line(data, sum) || !parse(sum, expected) || checksum(data) != expected)
    return std::nullopt;
  if (!take_line(data, line) || line != address) return std::nullopt;
  if (!take_line(data, line) || line != key) return std::nullopt;
  if (!take_line(data, verdict) || (verdict != "ok" && verdict != "failed")) return std::nullopt;
  CacheEntry entry;
  entry.ok = verdict == "ok";
  std::size_t log_size = 0, object_size = 0;
  if (!take_line(data, line) || !parse(line, entry.bytes)) return std::nullopt;
  if (!take_line(data, line) || !parse(line, log_size)) return std::nullopt;
  if (!take_line(data, line) || !parse(line, object_size)) return std::nullopt;
  if (log_size > data.size() || data.size() - log_size != object_size) return std::nullopt;
  entry.log = data.substr(0, log_size);
  if (with_object) entry.object = data.substr(log_size);
  return entry;
}

}  // namespace

DiskCache::DiskCache(std::filesystem::path folder, CacheLocks locks)
    : folder_(std::move(folder)), locks_(locks) {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!std::filesystem::is_directory(folder_, error)) folder_.clear();
}

std::optional<CacheEntry> DiskCache::load(const std::string& address, std::string_view key,
                                          bool with_object, bool* damaged) const {
  if (folder_.empty()) return std::nullopt;
  const std::optional<std::string> data = read_file(folder_ / address);
  if (!data) return std::nullopt;
  auto entry = decode(*data, address, key, with_object);
  if (!entry && damaged != nullptr) *damaged = true;
  return entry;
}

bool DiskCache::store(const std::string& address, std::string_view key,
                      const CacheEntry& entry) const {
  if (folder_.empty()) return false;
  static std::atomic<unsigned> serial{0};
  const std::filesystem::path part = folder_ / (address + "." + std::to_string(getpid()) + "." +
                                                std::to_string(serial++) + ".part");
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const bool written = write_all(fd, encode(address, key, entry));
  close(fd);
  const std::filesystem::path place = folder_ / address;
  if (written && rename(part.c_str(), place.c_str()) == 0) return true;
  // An empty folder in its place holds nothing of anybody's.
  if (written && rmdir(place.c_str()) == 0 && rename(part.c_str(), place.c_str()) == 0) return true;
  unlink(part.c_str());
  return false;
}

std::filesystem::path default_cache_dir() {
  for (const auto& [variable, below] : {std::pair{"WARMGATE_KERNEL_CACHE", ""},
                                        {"XDG_CACHE_HOME", "warmgate/kernels"},
                                        {"HOME", ".cache/warmgate/kernels"}}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      return *below == '\0' ? std::filesystem::path(value) : std::filesystem::path(value) / below;
    }
  }
  return {};
}

DiskCache::Lock::Lock(const DiskCache& cache, const std::string& address) {
  held_ = cache.locks_ == CacheLocks::kNone;
  if (cache.folder_.empty() || held_) return;
  // No link: it would be made, and held, wherever it points.
  fd_ = open((cache.folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) return;
  std::uint64_t at = 0;
  std::from_chars(address.data(), address.data() + std::min<std::size_t>(15, address.size()), at,
                  16);
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(at);
  range.l_len = 1;
  int status = 0;
  while ((status = fcntl(fd_, F_OFD_SETLKW, &range)) != 0 && errno == EINTR) {
  }
  held_ = status == 0;
}
DiskCache::Lock::~Lock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace warmgate::jit
