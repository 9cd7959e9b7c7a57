#include "harness/run/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>

#include "harness/contract/subprocess.h"
#include "harness/run/run_dir.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 512;
constexpr auto kPatience = std::chrono::minutes(5);

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }

std::string head_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string head(kBlock, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head;
}

bool is_gzip(std::string_view head) { return head.starts_with("\x1f\x8b"); }
bool is_zstd(std::string_view head) { return head.starts_with("\x28\xb5\x2f\xfd"); }
bool is_tar(std::string_view head) {
  return head.size() == kBlock && head.substr(257, 5) == "ustar";
}

std::string field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view all = header.substr(at, size);
  return std::string(all.substr(0, std::min(all.find('\0'), all.size())));
}

// Octal, as POSIX writes it; the base-256 of GNU is for sizes that no bundle has.
std::size_t octal(std::string_view header, std::size_t at, std::size_t size, const char* what) {
  std::string digits = field(header, at, size);
  while (!digits.empty() && digits.back() == ' ') digits.pop_back();
  while (!digits.empty() && digits.front() == ' ') digits.erase(0, 1);
  if (digits.empty() || digits.size() > 11 ||
      digits.find_first_not_of("01234567") != std::string::npos)
    fail(fmt::format("its {} is no number", what));
  return std::stoull(digits, nullptr, 8);
}

void check_sum(std::string_view header) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  if (sum != octal(header, 148, 8, "check sum")) fail("a header is damaged");
}

std::string checked_name(std::string_view header, const ArchiveLimits& limits) {
  std::string name = field(header, 0, 100);
  if (const std::string prefix = field(header, 345, 155); !prefix.empty())
    name = prefix + "/" + name;
  while (name.starts_with("./")) name.erase(0, 2);
  while (name.ends_with("/")) name.pop_back();
  if (name == "." || name.empty()) return "";
  const auto refuse = [&](const std::string& why) {
    fail(fmt::format("an entry is called '{}': {}", name.substr(0, 200), why));
  };
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\')
      fail("an entry's name holds a control character or a backslash");
  }
  if (name.front() == '/') refuse("an absolute path");
  std::size_t depth = 0;
  for (std::size_t at = 0; at <= name.size(); ++depth) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") refuse("a path that is not plain");
    at = end + 1;
  }
  if (depth > limits.depth) refuse("nested too deeply");
  return name;
}

// What a filter makes of the file, or what went wrong.
std::string filtered(const std::vector<std::string>& argv, const fs::path& file,
                     std::size_t limit) {
  std::ifstream in(file, std::ios::binary);
  const auto feed = [&] {
    std::string piece(65536, '\0');
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    piece.resize(static_cast<std::size_t>(in.gcount()));
    return piece;
  };
  contract::Finished done = contract::run_helper(argv, feed, kPatience, limit);
  if (!done.started) fail("cannot be opened: " + done.problem);
  if (done.too_much) fail(fmt::format("is larger than {} bytes unpacked", limit));
  if (done.timed_out) fail("cannot be opened: " + argv[0] + " takes too long");
  if (done.exit_code != 0) {
    const std::size_t begin = std::min(done.err.find_first_not_of("\r\n"), done.err.size());
    const std::string why = done.err.substr(begin, done.err.find('\n', begin) - begin);
    fail("is damaged: " + (why.empty() ? "it cannot be unpacked" : why));
  }
  return std::move(done.out);
}

void write_new(const fs::path& file, std::string_view bytes, bool executable) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           executable ? 0700 : 0600));
  if (!fd.valid()) throw std::system_error(errno, std::generic_category(), file.string());
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw std::system_error(errno, std::generic_category(), file.string());
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

bool looks_like_archive(const fs::path& file) {
  std::error_code failed;
  if (!fs::is_regular_file(file, failed)) return false;
  const std::string head = head_of(file);
  return is_gzip(head) || is_zstd(head) || is_tar(head);
}

void pack(const fs::path& folder, const fs::path& file) {
  const std::string name = file.filename().string();
  std::vector<std::string> argv = {"tar",       "--create",  "--format=ustar",  "--sort=name",
                                   "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"};
  if (name.ends_with(".zst")) {
    argv.push_back("--zstd");
  } else if (!name.ends_with(".tar")) {
    argv.push_back("--gzip");
  }
  const fs::path temporary = file.string() + fmt::format(".{}.part", ::getpid());
  argv.insert(argv.end(), {"--file", temporary.string(), "--directory", folder.string(), "."});
  contract::Finished done = contract::run_helper(
      argv, [] { return std::string(); }, kPatience, 1 << 16);
  std::error_code ignored;
  if (!done.started || done.timed_out || done.exit_code != 0) {
    fs::remove(temporary, ignored);
    fail(fmt::format("cannot write {}: tar: {}", file.string(),
                     !done.started    ? done.problem
                     : done.timed_out ? "takes too long"
                                      : done.err.substr(0, done.err.find('\n'))));
  }
  fs::rename(temporary, file, ignored);
  if (ignored) fail(fmt::format("cannot write {}: {}", file.string(), ignored.message()));
}

void read_tar(std::string_view tar, const ArchiveLimits& limits,
              const std::function<void(const ArchiveEntry&)>& take) {
  std::set<std::string> names;
  std::size_t entries = 0, bytes = 0;
  for (std::size_t at = 0;;) {
    if (tar.size() - at < kBlock) fail("ends in the middle");
    const std::string_view header = tar.substr(at, kBlock);
    at += kBlock;
    if (header.find_first_not_of('\0') == header.npos) return;  // the end marker
    check_sum(header);
    if (header.substr(257, 5) != "ustar") fail("is no tar archive as bundles have it");
    if (++entries > limits.entries) fail(fmt::format("holds more than {} entries", limits.entries));
    ArchiveEntry entry;
    entry.name = checked_name(header, limits);
    const std::size_t size = octal(header, 124, 12, "size");
    entry.executable = (octal(header, 100, 8, "mode") & 0100) != 0;
    const char type = header[156];
    entry.folder = type == '5';
    if (type != '0' && type != '\0' && type != '5')
      fail(fmt::format("'{}' is neither a file nor a folder (type '{}')", entry.name,
                       type >= 0x20 && type < 0x7f ? std::string(1, type) : "?"));
    if (entry.folder && size != 0) fail("a folder has contents");
    if (size > limits.bytes - bytes) fail(fmt::format("is larger than {} bytes", limits.bytes));
    if (size > tar.size() - at) fail("ends in the middle");
    bytes += size;
    entry.bytes = tar.substr(at, size);
    const std::size_t padded = (size + kBlock - 1) / kBlock * kBlock;
    at += std::min(padded, tar.size() - at);
    if (entry.name.empty()) {
      if (!entry.folder) fail("an entry has no name");
      continue;
    }
    if (!names.insert(entry.name).second) fail(fmt::format("'{}' is there twice", entry.name));
    take(entry);
  }
}

void unpack(const fs::path& file, const fs::path& folder, const ArchiveLimits& limits) {
  try {
    std::error_code failed;
    if (fs::file_size(file, failed) > limits.bytes || failed)
      fail(failed ? failed.message() : fmt::format("is larger than {} bytes", limits.bytes));
    const std::string head = head_of(file);
    // Headers and padding come on top of the contents.
    const std::size_t most = limits.bytes + limits.entries * 2 * kBlock + (1 << 20);
    std::string tar;
    if (is_gzip(head)) {
      tar = filtered({"gzip", "--decompress", "--stdout"}, file, most);
    } else if (is_zstd(head)) {
      tar = filtered({"zstd", "--decompress", "--stdout", "--quiet"}, file, most);
    } else if (is_tar(head)) {
      tar = filtered({"cat"}, file, most);
    } else {
      fail("is no archive");
    }
    read_tar(tar, limits, [&](const ArchiveEntry& entry) {
      const fs::path target = folder / entry.name;
      fs::create_directories(entry.folder ? target : target.parent_path());
      if (!entry.folder) write_new(target, entry.bytes, entry.executable);
    });
  } catch (const std::exception& error) {
    fail(file.string() + " " + error.what());
  }
}

}  // namespace warmgate::run
