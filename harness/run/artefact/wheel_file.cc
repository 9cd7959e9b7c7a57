#include "harness/run/artefact/wheel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "harness/run/run_dir.h"
#include "harness/scenario/artefact_reader.h"
#include "harness/scenario/problems.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

// APPNOTE.TXT 4.3: records are little-endian and begin with these words.
constexpr std::uint32_t kEnd = 0x06054b50, kEntry = 0x02014b50, kEnd64Locator = 0x07064b50,
                        kEnd64 = 0x06064b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kMostComment = 65535;
constexpr std::uint64_t kMostDirectory = 256 << 20;

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t out = 0;
  for (std::size_t i = count; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

std::string read_at(int fd, std::uint64_t at, std::size_t count) {
  std::string out(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t n = ::pread(fd, out.data() + have, count - have, static_cast<off_t>(at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.resize(have);
  return out;
}

struct Directory {
  std::uint64_t at = 0, bytes = 0;
};

Directory find_directory(int fd, std::uint64_t size) {
  const std::uint64_t tail = std::min<std::uint64_t>(size, kEndBytes + kMostComment);
  const std::string end = read_at(fd, size - tail, tail);
  for (std::size_t i = end.size() >= kEndBytes ? end.size() - kEndBytes + 1 : 0; i-- > 0;) {
    if (number(end, i, 4) != kEnd) continue;
    Directory out{number(end, i + 16, 4), number(end, i + 12, 4)};
    if (out.at != 0xffffffff && out.bytes != 0xffffffff) return out;
    // zip64: a locator of 20 bytes stands in front and leads to the real numbers.
    const std::uint64_t here = size - tail + i;
    if (here < 20) break;
    const std::string locator = read_at(fd, here - 20, 20);
    if (locator.size() < 20 || number(locator, 0, 4) != kEnd64Locator) break;
    const std::string real = read_at(fd, number(locator, 8, 8), 56);
    if (real.size() < 56 || number(real, 0, 4) != kEnd64) break;
    return {number(real, 48, 8), number(real, 40, 8)};
  }
  throw std::runtime_error("it is no zip file, or its end is missing");
}

// Names may not leave the folder; backslashes and drives do so elsewhere.
bool leaves(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != name.npos ||
      name.find('\0') != name.npos)
    return true;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

WheelName read_wheel_name(std::string_view file_name) {
  const auto wrong = [&](std::string_view why) {
    throw std::runtime_error(
        fmt::format("{} is no name of a wheel: {}", scenario::shown(file_name), why));
  };
  constexpr std::string_view kSuffix = ".whl";
  if (file_name.size() <= kSuffix.size() || !file_name.ends_with(kSuffix))
    wrong("it does not end in .whl");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-+!").find(c) != std::string_view::npos;
  };
  if (!std::all_of(file_name.begin(), file_name.end(), plain) || file_name.front() == '-' ||
      file_name.front() == '.')
    wrong("it holds what no such name may");
  const std::string_view stem = file_name.substr(0, file_name.size() - kSuffix.size());
  const auto dashes = std::count(stem.begin(), stem.end(), '-');
  if (dashes != 4 && dashes != 5) wrong("expected name-version-python-abi-platform.whl");
  const std::size_t first = stem.find('-'), second = stem.find('-', first + 1);
  return {std::string(stem.substr(0, first)),
          std::string(stem.substr(first + 1, second - first - 1))};
}

void check_wheel_file(const fs::path& path) {
  const auto wrong = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("{}: {}", path.string(), why));
  };
  struct stat info {};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) wrong(std::strerror(errno));
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) wrong("it is no file");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  try {
    const Directory directory = find_directory(fd.get(), size);
    if (directory.bytes > kMostDirectory || directory.at > size ||
        directory.bytes > size - directory.at)
      throw std::runtime_error("its directory leads out of the file");
    const std::string all =
        read_at(fd.get(), directory.at, static_cast<std::size_t>(directory.bytes));
    bool metadata = false, record = false;
    for (std::size_t at = 0; at < all.size();) {
      if (all.size() - at < kEntryBytes || number(all, at, 4) != kEntry)
        throw std::runtime_error("its directory is damaged");
      const std::size_t name_bytes = number(all, at + 28, 2);
      const std::size_t rest = number(all, at + 30, 2) + number(all, at + 32, 2);
      if (all.size() - at < kEntryBytes + name_bytes + rest)
        throw std::runtime_error("its directory is damaged");
      const std::string_view name = std::string_view(all).substr(at + kEntryBytes, name_bytes);
      if (leaves(name)) {
        throw std::runtime_error(
            fmt::format("it holds {}, which leads out of its folder", scenario::shown(name)));
      }
      metadata = metadata || name.ends_with(".dist-info/METADATA");
      record = record || name.ends_with(".dist-info/RECORD");
      at += kEntryBytes + name_bytes + rest;
    }
    if (!metadata || !record)
      throw std::runtime_error("it is a zip without .dist-info/METADATA and RECORD, so no wheel");
  } catch (const std::runtime_error& error) {
    wrong(error.what());
  }
}

std::string wheel_name_of_url(const std::string& url) {
  const std::string bare = scenario::bare_url(url);
  const std::string last = bare.substr(bare.rfind('/') + 1);
  std::string out;
  for (std::size_t i = 0; i < last.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      const std::size_t value =
          at < last.size()
              ? std::string_view("0123456789abcdef").find(static_cast<char>(last[at] | 32))
              : std::string_view::npos;
      return value;
    };
    if (last[i] == '%' && digit(i + 1) < 16 && digit(i + 2) < 16) {
      out += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
      i += 2;
    } else {
      out += last[i];
    }
  }
  (void)read_wheel_name(out);
  return out;
}

}  // namespace warmgate::run
