// OTLP as JSON: protobuf's mapping (64-bit numbers are texts), with trace and span identifiers in
// hexadecimal (opentelemetry.io, OTLP specification, "JSON Protobuf Encoding").
#include <charconv>
#include <nlohmann/json.hpp>

#include "harness/explain/text.h"
#include "harness/target/spans/otlp.h"
#include "harness/trace/secrets.h"

namespace warmgate::target {
namespace {

using nlohmann::json;

// Nesting is what a parser's stack pays for; the deepest that the schema has is about fifteen.
constexpr int kDeepest = 64;

// Looked for before it is parsed: a parser that calls back looks through all that an array holds
// at each of its objects, and a request of a million would take minutes.
bool is_deep(std::string_view body) {
  int depth = 0;
  bool text = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (text) {
      if (c == '\\') ++i;
      if (c == '"') text = false;
    } else if (c == '"') {
      text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

const json& at(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

template <class Visit>
void each_of(const json& list, Visit visit) {
  if (!list.is_array()) return;
  for (const json& item : list) visit(item);
}

std::string text_at(const json& object, const char* key, std::size_t most) {
  const json& value = at(object, key);
  return value.is_string() ? span_text(value.get_ref<const std::string&>(), most) : "";
}

std::int64_t number_of(const json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_string()) return 0;
  const std::string& text = value.get_ref<const std::string&>();
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : 0;
}

std::string identifier(const json& object, const char* key) {
  std::string out = text_at(object, key, 64);
  for (char& c : out) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  const bool legal = out.size() == 16 &&
                     out.find_first_not_of("0123456789abcdef") == std::string::npos &&
                     out.find_first_not_of('0') != std::string::npos;
  return legal ? out : "";
}

Attributes attributes_of(const json& list) {
  Attributes out;
  each_of(list, [&](const json& attribute) {
    const std::string key = text_at(attribute, "key", 128);
    const json& value = at(attribute, "value");
    if (key.empty() || out.size() >= kMostAttributes) return;
    const std::size_t most = key == "exception.stacktrace" ? kMostStackText : kMostSpanText;
    if (at(value, "stringValue").is_string()) {
      out.insert_or_assign(key, text_at(value, "stringValue", most));
    } else if (at(value, "boolValue").is_boolean()) {
      out.insert_or_assign(key, at(value, "boolValue").get<bool>() ? "true" : "false");
    } else if (!at(value, "intValue").is_null()) {
      out.insert_or_assign(key, std::to_string(number_of(at(value, "intValue"))));
    } else if (at(value, "doubleValue").is_number()) {
      out.insert_or_assign(key, at(value, "doubleValue").dump());
    }
  });
  return out;
}

void read_events_of(const json& list, std::vector<SpanException>& out) {
  each_of(list, [&](const json& event) {
    if (text_at(event, "name", 64) != "exception" || out.size() >= kMostExceptions) return;
    Attributes attributes = attributes_of(at(event, "attributes"));
    out.push_back({number_of(at(event, "timeUnixNano")), attributes["exception.type"],
                   attributes["exception.message"], attributes["exception.stacktrace"]});
  });
}

ReceivedSpan span_of(const json& from) {
  ReceivedSpan out;
  out.name = text_at(from, "name", 256);
  out.id = identifier(from, "spanId");
  out.parent = identifier(from, "parentSpanId");
  out.begin_wall_ns = number_of(at(from, "startTimeUnixNano"));
  out.end_wall_ns = number_of(at(from, "endTimeUnixNano"));
  out.attributes = attributes_of(at(from, "attributes"));
  read_events_of(at(from, "events"), out.exceptions);
  const json& status = at(from, "status");
  const std::int64_t code = number_of(at(status, "code"));
  out.status = code == 1 || code == 2 ? static_cast<int>(code) : 0;
  out.status_message = text_at(status, "message", kMostSpanText);
  return out;
}

}  // namespace

std::string span_text(std::string_view text, std::size_t most) {
  // A secret that is cut is known by its shape no longer, so it goes first.
  const std::string whole = trace::mask_secrets(text.substr(0, most + trace::kShapeMargin), {});
  std::string out;
  for (std::string_view rest = whole; out.size() < most;) {
    const std::size_t end = rest.find('\n');
    out += explain::internal::shown(rest.substr(0, end), most - out.size());
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
    if (out.size() < most && !rest.empty()) out += '\n';
  }
  return out;
}

ReceivedSpans read_otlp_json(std::string_view body, std::size_t most) {
  if (is_deep(body)) throw OtlpError("nested more deeply than any message of OTLP");
  const json request = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) throw OtlpError("not a JSON object");
  ReceivedSpans out;
  each_of(at(request, "resourceSpans"), [&](const json& group) {
    const auto resource =
        std::make_shared<const Attributes>(attributes_of(at(at(group, "resource"), "attributes")));
    each_of(at(group, "scopeSpans"), [&](const json& scope) {
      const std::string name = text_at(at(scope, "scope"), "name", 256);
      each_of(at(scope, "spans"), [&](const json& from) {
        if (out.spans.size() >= most) {
          ++out.left_out;
          return;
        }
        ReceivedSpan span = span_of(from);
        span.scope = name;
        span.resource = resource;
        out.spans.push_back(std::move(span));
      });
    });
  });
  return out;
}

}  // namespace warmgate::target
