#include "harness/trace/fields.h"

#include <limits>
#include <stdexcept>

namespace warmgate::trace {

Fields::Fields(const json& object) {
  if (object.is_null()) return;
  if (!object.is_object()) throw std::invalid_argument("the fields of an event are an object");
  slots_.reserve(object.size());
  for (const auto& [key, value] : object.items()) add_any(key, value);
}

Fields::Fields(std::initializer_list<std::pair<std::string, json>> fields) {
  slots_.reserve(fields.size());
  for (const auto& [key, value] : fields) add_any(key, value);
}

const Fields::Slot* Fields::find(std::string_view key) const {
  for (std::size_t i = slots_.size(); i-- > 0;) {
    const Slot& slot = slots_[i];
    if (slot.key_size != key.size()) continue;
    // Most names of one length differ in their first byte: a call for each would cost more.
    const char* name = buffer_.data() + slot.key_at;
    if (!key.empty() && *name != key.front()) continue;
    if (std::string_view(name, slot.key_size) == key) return &slot;
  }
  return nullptr;
}

Fields::Kind Fields::kind(std::string_view key) const {
  const Slot* slot = find(key);
  return slot == nullptr ? Kind::kNull : slot->kind;
}

std::string_view Fields::text(std::string_view key, std::string_view fallback) const {
  const Slot* slot = find(key);
  if (slot == nullptr || slot->kind != Kind::kString) return fallback;
  return view(slot->text_at, slot->text_size);
}

std::int64_t Fields::num(std::string_view key, std::int64_t fallback) const {
  const Slot* slot = find(key);
  if (slot == nullptr) return fallback;
  if (slot->kind == Kind::kInteger) return slot->integer;
  if (slot->kind != Kind::kReal) return fallback;
  return slot->real >= -9.2e18 && slot->real <= 9.2e18 ? static_cast<std::int64_t>(slot->real)
                                                       : fallback;
}

double Fields::real(std::string_view key, double fallback) const {
  const Slot* slot = find(key);
  if (slot == nullptr) return fallback;
  if (slot->kind == Kind::kInteger) return static_cast<double>(slot->integer);
  return slot->kind == Kind::kReal ? slot->real : fallback;
}

bool Fields::flag(std::string_view key, bool fallback) const {
  const Slot* slot = find(key);
  return slot != nullptr && slot->kind == Kind::kBool ? slot->flag : fallback;
}

const json* Fields::nested(std::string_view key) const {
  const Slot* slot = find(key);
  return slot != nullptr && slot->kind == Kind::kNested ? &nested_[slot->text_at] : nullptr;
}

json Fields::value(std::string_view key) const {
  const Slot* slot = find(key);
  return slot == nullptr ? json() : value_of(*slot);
}

json Fields::value_of(const Slot& slot) const {
  switch (slot.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return slot.flag;
    case Kind::kInteger:
      return slot.integer;
    case Kind::kReal:
      return slot.real;
    case Kind::kString:
      return std::string(view(slot.text_at, slot.text_size));
    case Kind::kNested:
      return nested_[slot.text_at];
  }
  return nullptr;
}

json Fields::to_json() const {
  json out = json::object();
  for (const Slot& slot : slots_)
    out[std::string(view(slot.key_at, slot.key_size))] = value_of(slot);
  return out;
}

void Fields::reserve(std::size_t fields, std::size_t bytes) {
  slots_.reserve(fields);
  buffer_.reserve(bytes);
}

Fields::Slot& Fields::append(std::string_view key, Kind kind) {
  // Offsets are 32 bits; a line is at most 1 MiB, so only a caller's mistake can get here.
  if (buffer_.size() + key.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("an event's fields exceed 4 GiB");
  Slot slot;
  slot.kind = kind;
  slot.key_at = static_cast<std::uint32_t>(buffer_.size());
  slot.key_size = static_cast<std::uint32_t>(key.size());
  buffer_.append(key);
  return slots_.emplace_back(slot);
}

void Fields::add_null(std::string_view key) { append(key, Kind::kNull); }
void Fields::add(std::string_view key, bool value) { append(key, Kind::kBool).flag = value; }
void Fields::add(std::string_view key, std::int64_t value) {
  append(key, Kind::kInteger).integer = value;
}
void Fields::add(std::string_view key, double value) { append(key, Kind::kReal).real = value; }

void Fields::add(std::string_view key, std::string_view value) {
  if (value.size() > std::numeric_limits<std::uint32_t>::max() - buffer_.size() - key.size())
    throw std::length_error("an event's fields exceed 4 GiB");
  Slot& slot = append(key, Kind::kString);
  slot.text_at = static_cast<std::uint32_t>(buffer_.size());
  slot.text_size = static_cast<std::uint32_t>(value.size());
  buffer_.append(value);
}

void Fields::add(std::string_view key, json nested) {
  append(key, Kind::kNested).text_at = static_cast<std::uint32_t>(nested_.size());
  nested_.push_back(std::move(nested));
}

void Fields::add_any(std::string_view key, const json& value) {
  switch (value.type()) {
    case json::value_t::boolean:
      return add(key, value.get<bool>());
    case json::value_t::number_integer:
      return add(key, value.get<std::int64_t>());
    case json::value_t::number_unsigned:
      if (value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max())
        return add(key, value.get<std::int64_t>());
      return add(key, value.get<double>());
    case json::value_t::number_float:
      return add(key, value.get<double>());
    case json::value_t::string:
      return add(key, std::string_view(value.get_ref<const std::string&>()));
    case json::value_t::object:
    case json::value_t::array:
      return add(key, json(value));
    default:
      return add_null(key);
  }
}

}  // namespace warmgate::trace
