#include "harness/scenario/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/scenario/problems.h"

namespace warmgate::scenario {
namespace {

Place place_at(std::string_view text, std::size_t offset,
               const std::shared_ptr<const std::string>& file) {
  int line = 1;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++line;
      begin = i + 1;
    }
  }
  return {file, line, static_cast<int>(offset - begin) + 1};
}

// Length of the UTF-8 sequence at the start of `text`, 0 if it is not valid.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) > 0x9F;
  const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool ends_somewhere(const std::filesystem::path& path) {
  std::error_code failed;
  const std::string name = path.string();
  return name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/") ||
         name == "/dev/stdin" || std::filesystem::is_regular_file(path, failed);
}

std::optional<std::string> read_text(const std::filesystem::path& path, const std::string& shown_as,
                                     Problems& problems) {
  const Place whole{std::make_shared<const std::string>(shown_as), 0, 0};
  const auto refuse = [&](const std::string& why) {
    problems.add(whole, "", why);
    return std::nullopt;
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  struct stat info {};
  const bool known = ::fstat(fd, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return refuse(S_ISDIR(info.st_mode) ? "a folder, not a file" : "not a regular file");
  }
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while (text.size() <= kMaxFileBytes && (got = ::read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const int error = errno;
  ::close(fd);
  if (got < 0) return refuse(fmt::format("cannot be read: {}", std::strerror(error)));
  return text;
}

bool check_text(std::string_view text, const std::shared_ptr<const std::string>& file,
                Problems& problems) {
  if (text.size() > kMaxFileBytes) {
    problems.add(Place{file, 0, 0}, "", fmt::format("larger than {} KiB", kMaxFileBytes / 1024));
    return false;
  }
  const std::size_t bad = std::min(invalid_utf8(text), text.find('\0'));
  if (bad != std::string_view::npos) {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[bad]));
    problems.add(place_at(text, bad, file), "",
                 fmt::format("byte 0x{:02x} is not UTF-8 text; save the file as UTF-8", byte));
    return false;
  }
  bool ok = true;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    const std::size_t first = text.find_first_not_of(" \t\r", begin);
    const std::size_t tab = text.find('\t', begin);
    if (first < end && tab < first && text[first] != '#') {
      problems.add(place_at(text, tab, file), "", "a tab in the indentation; YAML takes spaces");
      ok = false;
    }
    begin = end + 1;
  }
  return ok;
}

}  // namespace warmgate::scenario
