// One line → event, in one pass: the library reads the JSON and calls back; scalars go straight
// into the event's flat fields, nested values into small trees.
#include <limits>
#include <stdexcept>

#include "harness/trace/event.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::trace {
namespace {

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

// The callbacks of nlohmann::json::sax_parse. Depth 0 is outside, 1 the event itself.
class Reader {
 public:
  explicit Reader(Event& event) : event_(event) {}
  bool not_object() const { return not_object_; }
  bool has_ev() const { return has_ev_; }
  bool has_time() const { return has_time_; }

  bool null() {
    return scalar([&] { event_.body.add_null(key_); }, nullptr);
  }
  bool boolean(bool value) {
    return scalar([&] { event_.body.add(key_, value); }, value);
  }
  bool number_integer(std::int64_t value) {
    if (depth_ == 1 && is_header()) return header(value);
    return scalar([&] { event_.body.add(key_, value); }, value);
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return number_integer(static_cast<std::int64_t>(value));
    return scalar([&] { event_.body.add(key_, static_cast<double>(value)); }, value);
  }
  bool number_float(double value, const std::string&) {
    return scalar([&] { event_.body.add(key_, value); }, value);
  }
  bool string(std::string& value) {
    if (depth_ == 1 && key_ == "ev") {
      event_.ev = value;
      has_ev_ = true;
      return true;
    }
    if (depth_ == 1 && key_ == "src") {
      event_.src = value;
      return true;
    }
    return scalar([&] { event_.body.add(key_, std::string_view(value)); }, value);
  }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) {
    if (depth_ == 0) {
      ++depth_;
      return true;
    }
    return open(json::object());
  }
  bool start_array(std::size_t) {
    if (depth_ == 0) {
      not_object_ = true;
      return false;
    }
    return open(json::array());
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      key_ = name;
    } else {
      inner_key_ = name;
    }
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }

 private:
  bool is_header() const {
    return key_ == "ev" || key_ == "t" || key_ == "rank" || key_ == "src" || key_ == "res_ns";
  }
  bool header(std::int64_t value) {
    if (key_ == "t") {
      event_.t_ns = value;
      has_time_ = true;
    } else if (key_ == "res_ns") {
      event_.res_ns = value;
    } else if (key_ == "rank" && value >= 0 && value <= 1'000'000) {
      // A rank that no world has is no rank; a cast would turn it into one.
      event_.rank = static_cast<int>(value);
    }
    return true;
  }
  template <class Add, class Value>
  bool scalar(Add&& add, const Value& value) {
    if (depth_ == 0) {
      not_object_ = true;
      return false;
    }
    if (depth_ == 1) {
      if (!is_header()) add();
      return true;
    }
    put(json(value));
    return true;
  }
  json* put(json value) {
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[inner_key_] = std::move(value));
  }
  bool open(json value) {
    // The parser has no bound of its own, and whoever walks a tree recurses.
    if (depth_ >= kDeepest) return false;
    if (depth_ == 1) {
      root_ = std::move(value);
      open_.assign(1, &root_);
    } else {
      open_.push_back(put(std::move(value)));
    }
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    if (depth_ == 0) return true;
    open_.pop_back();
    if (depth_ == 1 && !is_header()) event_.body.add(key_, std::move(root_));
    return true;
  }

  static constexpr int kDeepest = 256;
  Event& event_;
  int depth_ = 0;
  bool not_object_ = false, has_ev_ = false, has_time_ = false;
  std::string key_, inner_key_;
  json root_;
  std::vector<json*> open_;  // the nested values under way, outermost first
};

}  // namespace

Event parse_event(std::string_view line) {
  // The parser takes a NUL for the end of its input and would ignore what follows.
  if (line.find('\0') != std::string_view::npos) throw std::runtime_error("not JSON; a NUL byte");
  Event event;
  event.body.reserve(16, line.size());
  Reader reader(event);
  if (!json::sax_parse(line, &reader)) {
    if (reader.not_object() && json::accept(line))
      throw std::runtime_error("not an object; an event is one JSON object a line");
    throw std::runtime_error("not JSON; an event is one JSON object a line");
  }
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
