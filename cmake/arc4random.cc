// libstdc++ of Debian 12, linked in, asks for arc4random@GLIBC_2.36 (in std::random_device, whether
// or not anybody makes one). With this one the program starts on systems from GLIBC_2.34 on.
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  // Never short: the kernel gives up to 256 bytes at once. A system without it has no randomness to
  // fall back on, and the real one aborts there too.
  while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) std::abort();
  }
  return value;
}
