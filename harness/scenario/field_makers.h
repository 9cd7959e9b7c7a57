// Short words for writing tables of fields.
#pragma once

#include "harness/scenario/fields.h"
#include "harness/scenario/scalars.h"

namespace warmgate::scenario::makers {

inline Field make(std::string_view name, Type type, std::string_view meaning) {
  Field field;
  field.name = name;
  field.type = type;
  field.meaning = meaning;
  return field;
}
inline Field element(Type type) { return make("", type, ""); }

inline Field ranged(std::string_view name, Type type, std::string_view meaning, double min,
                    double max) {
  Field field = make(name, type, meaning);
  field.min = min;
  field.max = max;
  return field;
}
inline Field integer(std::string_view name, std::string_view meaning, double min, double max) {
  return ranged(name, Type::kInteger, meaning, min, max);
}
inline Field real(std::string_view name, std::string_view meaning, double min, double max) {
  return ranged(name, Type::kReal, meaning, min, max);
}
inline Field bytes(std::string_view name, std::string_view meaning, double min = 1) {
  return ranged(name, Type::kBytes, meaning, min, static_cast<double>(kMaxInteger));
}
inline Field seconds(std::string_view name, std::string_view meaning) {
  return ranged(name, Type::kSeconds, meaning, 1e-3, 1e7);
}
inline Field boolean(std::string_view name, std::string_view meaning) {
  return make(name, Type::kBool, meaning);
}
inline Field text(std::string_view name, std::string_view meaning) {
  return make(name, Type::kText, meaning);
}
inline Field name(std::string_view key, std::string_view meaning) {
  return make(key, Type::kName, meaning);
}
inline Field reference(std::string_view name, std::string_view meaning) {
  return make(name, Type::kReference, meaning);
}
inline Field choice(std::string_view name, std::string_view meaning,
                    std::vector<std::string_view> choices) {
  Field field = make(name, Type::kChoice, meaning);
  field.choices = std::move(choices);
  return field;
}
inline Field with_element(std::string_view name, Type type, std::string_view meaning, Field item) {
  Field field = make(name, type, meaning);
  field.fields.push_back(std::move(item));
  return field;
}
inline Field list(std::string_view name, std::string_view meaning, Field item) {
  return with_element(name, Type::kList, meaning, std::move(item));
}
inline Field one_or_more(std::string_view name, std::string_view meaning, Field item) {
  return with_element(name, Type::kOneOrMore, meaning, std::move(item));
}
inline Field named(std::string_view name, std::string_view meaning, Keys keys, Field value) {
  Field field = with_element(name, Type::kNamed, meaning, std::move(value));
  field.keys = keys;
  return field;
}
inline Field object(std::string_view name, std::string_view meaning, std::vector<Field> fields) {
  Field field = make(name, Type::kObject, meaning);
  field.fields = std::move(fields);
  return field;
}
inline Field required(Field field) {
  field.required = true;
  return field;
}
inline Field otherwise(Field field, std::string_view fallback) {
  field.fallback = fallback;
  return field;
}

}  // namespace warmgate::scenario::makers
