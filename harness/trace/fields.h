// The fields of one event: a flat list over one buffer. A run sends hundreds of lines of a dozen
// fields, and every contract looks through all of them; a tree of nodes a line costs more than the
// engine under test.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::trace {

using json = nlohmann::json;

class Fields {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kString, kNested };

  Fields() = default;
  /// From an object; anything else than an object or null is a std::invalid_argument.
  Fields(
      const json& object);  // NOLINT(google-explicit-constructor): `body = {{"k", 1}}` reads well
  Fields(std::initializer_list<std::pair<std::string, json>> fields);

  bool empty() const { return slots_.empty(); }
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// kNull for an absent field too.
  Kind kind(std::string_view key) const;
  /// The fallback if the field is absent or of another type; never throws. Views live as long as
  /// the object is neither changed nor moved.
  std::string_view text(std::string_view key, std::string_view fallback = "") const;
  std::int64_t num(std::string_view key, std::int64_t fallback = 0) const;
  double real(std::string_view key, double fallback = 0) const;
  bool flag(std::string_view key, bool fallback = false) const;
  /// An array or object; null if the field is absent or a scalar.
  const json* nested(std::string_view key) const;
  /// Any field as JSON; null if absent.
  json value(std::string_view key) const;
  /// All fields. Of two with one name the later counts.
  json to_json() const;

  /// Replaces the field, or adds it.
  void set(std::string_view key, const json& value) { add_any(key, value); }

  // Filling, in the order of the line.
  void reserve(std::size_t fields, std::size_t bytes);
  void add_null(std::string_view key);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::int64_t value);
  void add(std::string_view key, double value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, json nested);

 private:
  struct Slot {
    std::uint32_t key_at = 0, key_size = 0;
    std::uint32_t text_at = 0, text_size = 0;  // kString; kNested: index into nested_
    union {
      std::int64_t integer;
      double real;
      bool flag;
    };
    Kind kind = Kind::kNull;
    Slot() : integer(0) {}
  };
  const Slot* find(std::string_view key) const;
  std::string_view view(std::uint32_t at, std::uint32_t size) const {
    return std::string_view(buffer_).substr(at, size);
  }
  Slot& append(std::string_view key, Kind kind);
  void add_any(std::string_view key, const json& value);
  json value_of(const Slot& slot) const;

  std::string buffer_;
  std::vector<Slot> slots_;
  std::vector<json> nested_;
};

}  // namespace warmgate::trace
