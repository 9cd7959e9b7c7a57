// Messages of OTLP for tests, written by hand.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "harness/target/companion.h"

namespace warmgate::target::testing {

inline std::string wire_varint(std::uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string wire_number(unsigned field, std::uint64_t value) {
  return wire_varint(field << 3) + wire_varint(value);
}
inline std::string wire_fixed64(unsigned field, std::uint64_t value) {
  std::string out = wire_varint(field << 3 | 1);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}
inline std::string wire_bytes(unsigned field, const std::string& bytes) {
  return wire_varint(field << 3 | 2) + wire_varint(bytes.size()) + bytes;
}
inline std::string wire_attribute(unsigned field, const std::string& key,
                                  const std::string& value) {
  return wire_bytes(field, wire_bytes(1, key) + wire_bytes(2, wire_bytes(1, value)));
}
inline std::string wire_exception(std::int64_t wall_ns, const std::string& type,
                                  const std::string& message, const std::string& stack) {
  return wire_bytes(11, wire_fixed64(1, static_cast<std::uint64_t>(wall_ns)) +
                            wire_bytes(2, "exception") + wire_attribute(3, "exception.type", type) +
                            wire_attribute(3, "exception.message", message) +
                            wire_attribute(3, "exception.stacktrace", stack));
}
/// A span, `more` being fields of its own.
inline std::string wire_span(const std::string& name, std::int64_t begin_ns, std::int64_t end_ns,
                             const std::string& more = "") {
  return wire_bytes(1, std::string(16, '\1')) + wire_bytes(2, "\1\2\3\4\5\6\7\xff") +
         wire_bytes(5, name) + wire_fixed64(7, static_cast<std::uint64_t>(begin_ns)) +
         wire_fixed64(8, static_cast<std::uint64_t>(end_ns)) + more;
}
/// A request with these spans of one process.
inline std::string wire_request(const std::vector<std::string>& spans, int pid = 4711) {
  std::string scope = wire_bytes(1, wire_bytes(1, "engine.module"));
  for (const std::string& span : spans) scope += wire_bytes(2, span);
  const std::string resource = wire_attribute(1, "service.name", "engine") +
                               wire_attribute(1, "their.pid", std::to_string(pid)) +
                               wire_attribute(1, "their.name", "Worker_1");
  return wire_bytes(1, wire_bytes(1, resource) + wire_bytes(2, scope));
}

class KeptEvents : public EventSink {
 public:
  void add(trace::Event event) override {
    const std::lock_guard lock(mutex_);
    trace_.events.push_back(std::move(event));
  }
  void wake() override {}
  trace::Trace trace() {
    const std::lock_guard lock(mutex_);
    return trace_;
  }

 private:
  std::mutex mutex_;
  trace::Trace trace_;
};

}  // namespace warmgate::target::testing
