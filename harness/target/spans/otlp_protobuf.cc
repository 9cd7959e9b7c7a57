// Field numbers are those of open-telemetry/opentelemetry-proto: collector/trace/v1/
// trace_service.proto, trace/v1/trace.proto, common/v1/common.proto, resource/v1/resource.proto. A
// known field of another form than the schema's counts as unknown, as protobuf's own readers have
// it.
#include <fmt/format.h>

#include <bit>

#include "harness/target/spans/otlp.h"
#include "harness/target/spans/wire_format.h"

namespace warmgate::target {
namespace {

using Form = WireField::Form;

template <class Visit>
void each_field(std::string_view message, Visit visit) {
  WireReader reader(message);
  while (const auto field = reader.next()) visit(*field);
}

bool is(const WireField& field, std::uint32_t number, Form form) {
  return field.number == number && field.form == form;
}

// KeyValue: key 1, value 2. AnyValue: string 1, bool 2, int 3, double 4; lists, maps and bytes are
// nothing that a start needs.
void read_attribute(std::string_view message, Attributes& out) {
  std::string_view key;
  std::optional<std::string> text;
  each_field(message, [&](const WireField& field) {
    if (is(field, 1, Form::kBytes)) key = field.bytes;
    if (!is(field, 2, Form::kBytes)) return;
    text.reset();
    each_field(field.bytes, [&](const WireField& value) {
      if (is(value, 1, Form::kBytes)) text = std::string(value.bytes);
      if (is(value, 2, Form::kVarint)) text = value.value != 0 ? "true" : "false";
      if (is(value, 3, Form::kVarint)) {
        text = std::to_string(static_cast<std::int64_t>(value.value));
      }
      if (is(value, 4, Form::kFixed64))
        text = fmt::format("{}", std::bit_cast<double>(value.value));
    });
  });
  if (!text || key.empty() || out.size() >= kMostAttributes) return;
  const std::string name = span_text(key, 128);
  const std::size_t most = name == "exception.stacktrace" ? kMostStackText : kMostSpanText;
  out.insert_or_assign(name, span_text(*text, most));
}

std::string hex(std::string_view bytes) {
  if (bytes.size() != 8) return "";  // invalid by the schema
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out.find_first_not_of('0') == std::string::npos ? "" : out;
}

// Span.Event: time 1, name 2, attributes 3.
void read_event(std::string_view message, std::vector<SpanException>& out) {
  SpanException exception;
  Attributes attributes;
  bool recorded = false;
  each_field(message, [&](const WireField& field) {
    if (is(field, 1, Form::kFixed64)) exception.wall_ns = static_cast<std::int64_t>(field.value);
    if (is(field, 2, Form::kBytes)) recorded = field.bytes == "exception";
    if (is(field, 3, Form::kBytes)) read_attribute(field.bytes, attributes);
  });
  if (!recorded || out.size() >= kMostExceptions) return;
  exception.type = attributes["exception.type"];
  exception.message = attributes["exception.message"];
  exception.stack = attributes["exception.stacktrace"];
  out.push_back(std::move(exception));
}

// Span: span_id 2, parent_span_id 4, name 5, start 7, end 8, attributes 9, events 11, status 15.
ReceivedSpan read_span(std::string_view message) {
  ReceivedSpan out;
  each_field(message, [&](const WireField& field) {
    if (is(field, 2, Form::kBytes)) out.id = hex(field.bytes);
    if (is(field, 4, Form::kBytes)) out.parent = hex(field.bytes);
    if (is(field, 5, Form::kBytes)) out.name = span_text(field.bytes, 256);
    if (is(field, 7, Form::kFixed64)) out.begin_wall_ns = static_cast<std::int64_t>(field.value);
    if (is(field, 8, Form::kFixed64)) out.end_wall_ns = static_cast<std::int64_t>(field.value);
    if (is(field, 9, Form::kBytes)) read_attribute(field.bytes, out.attributes);
    if (is(field, 11, Form::kBytes)) read_event(field.bytes, out.exceptions);
    if (!is(field, 15, Form::kBytes)) return;
    each_field(field.bytes, [&](const WireField& status) {
      if (is(status, 2, Form::kBytes)) out.status_message = span_text(status.bytes, kMostSpanText);
      if (is(status, 3, Form::kVarint)) out.status = status.value <= 2 ? int(status.value) : 0;
    });
  });
  return out;
}

// ScopeSpans: scope 1 (its name 1), spans 2.
void read_scope(std::string_view message, std::size_t most, ReceivedSpans& out) {
  const std::size_t first = out.spans.size();
  std::string scope;
  each_field(message, [&](const WireField& field) {
    if (is(field, 1, Form::kBytes)) {
      each_field(field.bytes, [&](const WireField& name) {
        if (is(name, 1, Form::kBytes)) scope = span_text(name.bytes, 256);
      });
    }
    if (!is(field, 2, Form::kBytes)) return;
    ReceivedSpan span = read_span(field.bytes);
    if (out.spans.size() < most) {
      out.spans.push_back(std::move(span));
    } else {
      ++out.left_out;
    }
  });
  for (std::size_t i = first; i < out.spans.size(); ++i) out.spans[i].scope = scope;
}

// ResourceSpans: resource 1 (its attributes 1), scope_spans 2.
void read_resource(std::string_view message, std::size_t most, ReceivedSpans& out) {
  const std::size_t first = out.spans.size();
  auto resource = std::make_shared<Attributes>();
  each_field(message, [&](const WireField& field) {
    if (is(field, 1, Form::kBytes)) {
      each_field(field.bytes, [&](const WireField& attribute) {
        if (is(attribute, 1, Form::kBytes)) read_attribute(attribute.bytes, *resource);
      });
    }
    if (is(field, 2, Form::kBytes)) read_scope(field.bytes, most, out);
  });
  for (std::size_t i = first; i < out.spans.size(); ++i) out.spans[i].resource = resource;
}

}  // namespace

ReceivedSpans read_otlp_protobuf(std::string_view body, std::size_t most) {
  ReceivedSpans out;
  each_field(body, [&](const WireField& field) {
    if (is(field, 1, Form::kBytes)) read_resource(field.bytes, most, out);
  });
  return out;
}

}  // namespace warmgate::target
