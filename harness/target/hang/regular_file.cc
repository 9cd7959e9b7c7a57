#include "harness/target/hang/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "harness/target/fd.h"

namespace warmgate::target {

std::string read_regular(const std::filesystem::path& file, std::size_t most, std::uintmax_t from) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  const auto size = static_cast<std::uintmax_t>(std::max<off_t>(0, info.st_size));
  if (from >= size) return "";
  std::string out(std::min<std::uintmax_t>(most, size - from), '\0');
  std::size_t got = 0;
  while (got < out.size()) {
    const ssize_t n =
        ::pread(fd.get(), out.data() + got, out.size() - got, static_cast<off_t>(from + got));
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  out.resize(got);
  return out;
}

}  // namespace warmgate::target
