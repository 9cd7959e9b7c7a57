// Spans as OpenTelemetry's exporters send them (OTLP 1.x): the few fields that a start needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::target {

/// Attributes whose values are texts, numbers or truth values, all as text. Bounded:
/// kMostAttributes of them, keys and values cut.
using Attributes = std::map<std::string, std::string, std::less<>>;

/// An exception that was recorded in a span (semantic conventions: event `exception`).
struct SpanException {
  std::int64_t wall_ns = 0;  // since 1970
  std::string type, message, stack;
};

struct ReceivedSpan {
  std::string name, scope;
  std::string id, parent;                           // 16 hexadecimal digits; "" = none
  std::int64_t begin_wall_ns = 0, end_wall_ns = 0;  // since 1970
  int status = 0;                                   // 0 unset, 1 ok, 2 error
  std::string status_message;
  Attributes attributes;
  std::vector<SpanException> exceptions;
  std::shared_ptr<const Attributes> resource;  // never null: of the process that made it
};

struct ReceivedSpans {
  std::vector<ReceivedSpan> spans;
  std::size_t left_out = 0;  // beyond `most`
};

/// The body is not what its content type says. what() says where.
class OtlpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kMostAttributes = 64, kMostExceptions = 16;
inline constexpr std::size_t kMostSpanText = 1024, kMostStackText = 16 * 1024;  // bytes

/// An ExportTraceServiceRequest in protobuf's wire format. Unknown fields are passed over; at most
/// `most` spans are kept. Throws OtlpError; nothing else, whatever the bytes are.
ReceivedSpans read_otlp_protobuf(std::string_view body, std::size_t most);
/// The same as JSON (protobuf's mapping with identifiers in hexadecimal).
ReceivedSpans read_otlp_json(std::string_view body, std::size_t most);

/// Valid UTF-8, at most `most` bytes; lines stay lines.
std::string span_text(std::string_view text, std::size_t most);

}  // namespace warmgate::target
