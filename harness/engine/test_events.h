// For tests: events into a file that nobody else sees, and back as JSON.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/trace/wire.h"

namespace warmgate::engine::test {

class Events {
 public:
  Events() : fd_(::memfd_create("events", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("memfd_create");
    writer.open_descriptor(fd_);
  }
  ~Events() { ::close(fd_); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// All lines so far. Throws where one is not legal JSON.
  std::vector<nlohmann::json> all() const {
    std::string text;
    char buffer[1 << 16];
    off_t at = 0;
    for (ssize_t n = 0; (n = ::pread(fd_, buffer, sizeof buffer, at)) > 0; at += n)
      text.append(buffer, static_cast<std::size_t>(n));
    std::vector<nlohmann::json> out;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      if (end == std::string::npos) throw std::runtime_error("half a line");
      out.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return out;
  }
  std::vector<nlohmann::json> of(std::string_view ev) const {
    std::vector<nlohmann::json> out;
    for (nlohmann::json& event : all()) {
      if (event.at("ev") == ev) out.push_back(std::move(event));
    }
    return out;
  }
  trace::EventWriter writer;

 private:
  int fd_;
};

}  // namespace warmgate::engine::test
