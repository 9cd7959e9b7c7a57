#include "harness/plan/shrink/reader.h"

#include <fmt/format.h>

#include "harness/scenario/problems.h"

namespace warmgate::plan::shrink {

std::string shown_value(const Json& value) {
  // Without the mark that keeps it apart from a text.
  if (is_python_word(value)) return scenario::shown(value.get<std::string>().substr(1));
  return scenario::shown(value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 200));
}

const Json* Reader::find(const std::string& key) {
  know(key);
  const auto it = config_.find(key);
  return it == config_.end() || it->is_null() ? nullptr : &*it;
}

std::int64_t Reader::whole(const std::string& key, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value = maybe(key, least, most);
  if (value) return *value;
  if (!has(key)) complain(key, "is missing");
  return least;
}

std::optional<std::int64_t> Reader::maybe(const std::string& key, std::int64_t least,
                                          std::int64_t most) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  // An unsigned number beyond 2^63 would read as a negative one.
  const bool fits =
      value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<std::uint64_t>() > (std::uint64_t{1} << 62));
  if (fits && value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most)
    return value->get<std::int64_t>();
  complain(key, fmt::format("is {}; expected a whole number from {} to {}", shown_value(*value),
                            least, most));
  return std::nullopt;
}

bool Reader::flag(const std::string& key, bool otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  complain(key, fmt::format("is {}; expected true or false", shown_value(*value)));
  return otherwise;
}

std::string Reader::word(const std::string& key, const std::string& otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (value->is_string() && !is_python_word(*value)) return value->get<std::string>();
  complain(key, fmt::format("is {}; expected a text", shown_value(*value)));
  return otherwise;
}

std::vector<std::int64_t> Reader::numbers(const std::string& key, std::int64_t least,
                                          std::int64_t most) {
  std::vector<std::int64_t> out;
  const Json* value = find(key);
  if (!value) return out;
  if (!value->is_array()) {
    complain(key, fmt::format("is {}; expected a list of whole numbers", shown_value(*value)));
    return out;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    const bool fits =
        item.is_number_integer() &&
        !(item.is_number_unsigned() && item.get<std::uint64_t>() > (std::uint64_t{1} << 62));
    if (!fits || item.get<std::int64_t>() < least || item.get<std::int64_t>() > most) {
      complain(fmt::format("{}[{}]", key, i),
               fmt::format("is {}; expected a whole number from {} to {}", shown_value(item), least,
                           most));
      return {};
    }
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

std::vector<std::string> Reader::words(const std::string& key) {
  std::vector<std::string> out;
  const Json* value = find(key);
  if (!value) return out;
  if (!value->is_array()) {
    complain(key, fmt::format("is {}; expected a list of texts", shown_value(*value)));
    return out;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (!(*value)[i].is_string()) {
      complain(fmt::format("{}[{}]", key, i),
               fmt::format("is {}; expected a text", shown_value((*value)[i])));
      return {};
    }
    out.push_back((*value)[i].get<std::string>());
  }
  return out;
}

}  // namespace warmgate::plan::shrink
