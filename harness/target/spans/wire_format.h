// Protobuf's wire format, as far as reading a message takes: tag, then a value of one of four forms
// (https://protobuf.dev/programming-guides/encoding/). Nothing is copied and nothing recurses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace warmgate::target {

struct WireField {
  enum class Form : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  std::uint32_t number = 0;
  Form form = Form::kVarint;
  std::uint64_t value = 0;  // of the numbers
  std::string_view bytes;   // of kBytes: a text, bytes or a message
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}
  /// The next field; nothing at the end. Throws OtlpError where the message is cut off, a length
  /// reaches beyond it, a number takes more than ten bytes, or a group begins (no message of OTLP
  /// has one).
  std::optional<WireField> next();

 private:
  std::uint64_t varint();
  std::string_view take(std::uint64_t size);
  std::uint64_t little_endian(unsigned size);
  std::string_view rest_;
};

}  // namespace warmgate::target
