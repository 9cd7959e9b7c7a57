// One line → event, in one pass: Boost.JSON's parser reads and calls back; scalars go straight into
// the event's flat fields, nested values into small trees. The rest of the project uses
// nlohmann/json, whose lexer takes a third of all a short run costs.
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>  // header-only: in this file only
#include <stdexcept>

#include "harness/trace/event.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::trace {
namespace {

constexpr std::size_t kDeepest = 256;

bool has_type(Fields::Kind kind, const json* nested, FieldType type) {
  switch (type) {
    case FieldType::kString:
      return kind == Fields::Kind::kString;
    case FieldType::kNumber:
      return kind == Fields::Kind::kInteger || kind == Fields::Kind::kReal;
    case FieldType::kBool:
      return kind == Fields::Kind::kBool;
    case FieldType::kArray:
      return nested != nullptr && nested->is_array();
    case FieldType::kAny:
      return true;
  }
  return false;
}

std::string_view type_name(FieldType type) {
  switch (type) {
    case FieldType::kString:
      return "a string";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kBool:
      return "true or false";
    case FieldType::kArray:
      return "an array";
    case FieldType::kAny:
      return "any value";
  }
  return "";
}

// The callbacks of the parser. Depth 0 is outside, 1 the event itself.
class Reader {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Error = boost::system::error_code;
  using Text = boost::json::string_view;

  explicit Reader(Event& event) : event_(&event) {}
  bool is_object() const { return is_object_; }
  bool has_ev() const { return has_ev_; }
  bool has_time() const { return has_time_; }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_null(Error&) {
    if (at_field()) {
      event_->body.add_null(key_);
    } else if (depth_ > 1) {
      put(nullptr);
    }
    return true;
  }
  bool on_bool(bool value, Error&) {
    if (at_field()) {
      event_->body.add(key_, value);
    } else if (depth_ > 1) {
      put(value);
    }
    return true;
  }
  bool on_int64(std::int64_t value, Text, Error&) {
    if (at_field()) {
      event_->body.add(key_, value);
    } else if (depth_ == 1) {
      header(value);
    } else if (depth_ > 1) {
      put(value);
    }
    return true;
  }
  bool on_uint64(std::uint64_t value, Text text, Error& error) {
    return on_double(static_cast<double>(value), text, error);  // beyond int64
  }
  bool on_double(double value, Text, Error&) {
    if (at_field()) {
      event_->body.add(key_, value);
    } else if (depth_ > 1) {
      put(value);
    }
    return true;
  }
  bool on_string_part(Text part, std::size_t, Error&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(Text last, std::size_t, Error&) {
    std::string_view value(last.data(), last.size());
    if (!text_.empty()) value = text_.append(value);
    string(value);
    text_.clear();
    return true;
  }
  bool on_key_part(Text part, std::size_t, Error&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(Text last, std::size_t, Error&) {
    std::string& name = depth_ == 1 ? key_ : inner_key_;
    name = text_;
    name.append(last.data(), last.size());
    text_.clear();
    return true;
  }
  bool on_object_begin(Error&) {
    if (depth_ == 0) {
      is_object_ = true;
      ++depth_;
    } else {
      open(json::object());
    }
    return true;
  }
  bool on_array_begin(Error&) {
    open(json::array());
    return true;
  }
  bool on_object_end(std::size_t, Error&) { return close(); }
  bool on_array_end(std::size_t, Error&) { return close(); }
  bool on_number_part(Text, Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

 private:
  bool is_header() const {
    return key_ == "ev" || key_ == "t" || key_ == "rank" || key_ == "src" || key_ == "res_ns";
  }
  bool at_field() const { return depth_ == 1 && is_object_ && !is_header(); }
  void header(std::int64_t value) {
    if (key_ == "t") {
      event_->t_ns = value;
      has_time_ = true;
    } else if (key_ == "res_ns") {
      event_->res_ns = value;
    } else if (key_ == "rank" && value >= 0 && value <= 1'000'000) {
      // A rank that no world has is no rank; a cast would turn it into one.
      event_->rank = static_cast<int>(value);
    }
  }
  void string(std::string_view value) {
    if (at_field()) {
      event_->body.add(key_, value);
    } else if (depth_ > 1) {
      put(std::string(value));
    } else if (depth_ == 1 && key_ == "ev") {
      event_->ev = value;
      has_ev_ = true;
    } else if (depth_ == 1 && key_ == "src") {
      event_->src = value;
    }
  }
  json* put(json value) {
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[inner_key_] = std::move(value));
  }
  void open(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      open_.push_back(&root_);
    } else {
      open_.push_back(put(std::move(value)));
    }
    ++depth_;
  }
  bool close() {
    --depth_;
    if (open_.empty()) return true;
    open_.pop_back();
    if (at_field()) event_->body.add(key_, std::move(root_));
    return true;
  }

  Event* event_;
  int depth_ = 0;
  bool is_object_ = false, has_ev_ = false, has_time_ = false;
  std::string key_, inner_key_;
  std::string text_;  // what came of a string or key that has escapes
  json root_;
  std::vector<json*> open_;  // the nested values under way, outermost first
};

}  // namespace

Event parse_event(std::string_view line) {
  Event event;
  event.body.reserve(16, line.size());
  boost::json::parse_options options;
  options.max_depth = kDeepest;  // whoever walks a tree recurses
  boost::json::basic_parser<Reader> parser(options, event);
  boost::system::error_code error;
  const std::size_t read = parser.write_some(false, line.data(), line.size(), error);
  const Reader& reader = parser.handler();
  if (error || read != line.size())
    throw std::runtime_error("not JSON; an event is one JSON object a line");
  if (!reader.is_object())
    throw std::runtime_error("not an object; an event is one JSON object a line");
  if (!reader.has_ev()) throw std::runtime_error("field 'ev' is missing or not a string");
  if (!reader.has_time())
    throw std::runtime_error("field 't' (ns, monotonic) is missing or not an integer");
  if (const EventKind* kind = find_kind(event.ev)) {
    for (const FieldRule& rule : kind->required) {
      const bool there = event.body.contains(rule.name);
      if (!there ||
          !has_type(event.body.kind(rule.name), event.body.nested(rule.name), rule.type)) {
        throw std::runtime_error("event '" + event.ev + "': field '" + std::string(rule.name) +
                                 "' must be " + std::string(type_name(rule.type)));
      }
    }
  }
  return event;
}

}  // namespace warmgate::trace
