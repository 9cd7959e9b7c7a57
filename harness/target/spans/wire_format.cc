#include "harness/target/spans/wire_format.h"

#include "harness/target/spans/otlp.h"

namespace warmgate::target {

std::uint64_t WireReader::varint() {
  std::uint64_t out = 0;
  for (unsigned i = 0; i < 10; ++i) {
    if (i == rest_.size()) throw OtlpError("the message ends within a number");
    const auto byte = static_cast<unsigned char>(rest_[i]);
    out |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    rest_.remove_prefix(i + 1);
    return out;
  }
  throw OtlpError("a number of more than ten bytes");
}

std::string_view WireReader::take(std::uint64_t size) {
  if (size > rest_.size()) throw OtlpError("a length that reaches beyond its message");
  const std::string_view out = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return out;
}

std::uint64_t WireReader::little_endian(unsigned size) {
  std::uint64_t out = 0;
  const std::string_view bytes = take(size);
  for (unsigned i = 0; i < size; ++i) {
    out |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return out;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t tag = varint();
  WireField out;
  if ((tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) throw OtlpError("a field without a number");
  out.number = static_cast<std::uint32_t>(tag >> 3);
  switch (tag & 7) {
    case 0:
      out.value = varint();
      return out;
    case 1:
      out.form = WireField::Form::kFixed64;
      out.value = little_endian(8);
      return out;
    case 2:
      out.form = WireField::Form::kBytes;
      out.bytes = take(varint());
      return out;
    case 5:
      out.form = WireField::Form::kFixed32;
      out.value = little_endian(4);
      return out;
    default:
      throw OtlpError("a field of a form that no message of OTLP has");
  }
}

}  // namespace warmgate::target
