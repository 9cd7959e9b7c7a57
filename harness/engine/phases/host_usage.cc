#include "harness/engine/phases/host_usage.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace warmgate::engine {

std::int64_t peak_rss_bytes() {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 0;
  std::int64_t bytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    constexpr const char* kName = "VmHWM:";
    if (std::strncmp(line, kName, std::strlen(kName)) != 0) continue;
    bytes = std::strtoll(line + std::strlen(kName), nullptr, 10) * 1024;
    break;
  }
  std::fclose(file);
  return bytes;
}

}  // namespace warmgate::engine
