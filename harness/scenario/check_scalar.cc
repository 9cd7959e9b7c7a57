// Single values: what is wrong with one, and one as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/scenario/check.h"
#include "harness/scenario/scalars.h"

namespace warmgate::scenario {
namespace {

std::string out_of_range(const Field& field, double value, const std::string& text) {
  if (field.min >= field.max && !(field.min == field.max && field.max != 0)) return "";
  if (value >= field.min && value <= field.max) return "";
  if (value < field.min) return fmt::format("{} is too small; at least {}", shown(text), field.min);
  return fmt::format(
      "{} is too large; at most {}", shown(text),
      field.max >= 1e6 ? fmt::format("{:.0f}", field.max) : fmt::format("{}", field.max));
}

std::string one_of(const std::string& text, const std::vector<std::string>& names,
                   std::string_view what) {
  if (std::find(names.begin(), names.end(), text) != names.end()) return "";
  return fmt::format("expected {}, got {}{}", what, shown(text), did_you_mean(text, names));
}

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

bool is_number(Type type) {
  return type == Type::kInteger || type == Type::kReal || type == Type::kBool;
}

std::string name_error(const std::string& text) {
  const bool fine =
      !text.empty() && text.size() <= 80 && text != "." && text != ".." &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string::npos;
  return fine ? "" : "expected a name of letters, digits, '.', '_' and '-', got " + shown(text);
}

std::string integer_error(const std::string& text, const Field& field) {
  const auto value = read_integer(text);
  if (!value) return value.why;
  if (!field.choices.empty()) {
    const auto names = strings(field.choices);
    const bool known =
        std::find(names.begin(), names.end(), std::to_string(*value.value)) != names.end();
    return known ? "" : fmt::format("expected one of {}, got {}", list_of(names), shown(text));
  }
  return out_of_range(field, static_cast<double>(*value.value), text);
}

}  // namespace

std::string scalar_error(const Node& node, const Field& field, std::string_view unit,
                         const Vocabulary& vocabulary) {
  const std::string& text = node.text;
  if (node.quoted && is_number(field.type)) {
    return fmt::format("expected {}, got the text {}; drop the quotes",
                       field.type == Type::kBool ? "true or false" : "a number", shown(text));
  }
  switch (field.type) {
    case Type::kInteger:
      return integer_error(text, field);
    case Type::kReal: {
      const auto value = read_real(text);
      return value ? out_of_range(field, *value.value, text) : value.why;
    }
    case Type::kBool:
      return read_bool(text).why;
    case Type::kName:
      return name_error(text);
    case Type::kChoice: {
      const auto names = strings(field.choices);
      return one_of(text, names, "one of " + list_of(names));
    }
    case Type::kContract: {
      const auto& names = vocabulary.contracts;
      if (std::find(names.begin(), names.end(), text) != names.end()) return "";
      const std::string meant = did_you_mean(text, names);
      return shown(text) + " is no contract" +
             (meant.empty() ? "; known: " + list_of(names) : meant);
    }
    case Type::kBytes: {
      const auto value = read_bytes(text);
      return value ? out_of_range(field, static_cast<double>(*value.value), text) : value.why;
    }
    case Type::kSeconds: {
      const auto value = read_quantity(text, "s");
      return value ? out_of_range(field, *value.value, text) : value.why;
    }
    case Type::kPercent: {
      const auto value = read_quantity(text, "%");
      if (!value) return value.why;
      if (text.find('%') == std::string::npos) {
        return "expected a per cent such as 10 %, got " + shown(text);
      }
      return *value.value < 0 ? "a negative per cent; direction says which way is worse" : "";
    }
    case Type::kFigureValue:
      return read_quantity(text, unit).why;
    case Type::kBound:
      return read_bound(text, unit).why;
    case Type::kDate:
      return is_date(text) ? "" : "expected a day as YYYY-MM-DD, got " + shown(text);
    case Type::kArch:
      return is_architecture(text) ? ""
                                   : "expected an architecture such as sm_90a, got " + shown(text);
    case Type::kPort: {
      if (text == "auto" || text == "none") return "";
      const auto value = read_integer(text);
      const bool fine = value && *value.value >= 1 && *value.value <= 65535;
      return fine ? "" : "expected auto, none, or a port from 1 to 65535, got " + shown(text);
    }
    default:
      return "";
  }
}

nlohmann::json to_json(const Node& node, const Field& field, const Vocabulary* vocabulary,
                       std::string_view unit) {
  using nlohmann::json;
  switch (field.type) {
    case Type::kInteger:
      return *read_integer(node.text).value;
    case Type::kReal:
      return *read_real(node.text).value;
    case Type::kBool:
      return *read_bool(node.text).value;
    case Type::kBytes:
      return *read_bytes(node.text).value;
    case Type::kSeconds:
      return *read_quantity(node.text, "s").value;
    case Type::kPercent:
      return *read_quantity(node.text, "%").value;
    case Type::kFigureValue:
      return *read_quantity(node.text, unit).value;
    case Type::kReference: {
      const auto number = read_integer(node.text);
      if (number && !node.quoted) return *number.value;
      return node.text;
    }
    case Type::kList:
    case Type::kOneOrMore: {
      json out = json::array();
      if (!node.is_list()) out.push_back(to_json(node, field.fields.front(), vocabulary, unit));
      for (const NodePtr& item : node.items) {
        out.push_back(to_json(*item, field.fields.front(), vocabulary, unit));
      }
      return out;
    }
    case Type::kObject: {
      json out = json::object();
      for (const Node::Entry& entry : node.entries) {
        if (const Field* child = field.find(entry.key)) {
          out[entry.key] = to_json(*entry.value, *child, vocabulary, unit);
        }
      }
      return out;
    }
    case Type::kNamed: {
      const bool about_figure =
          field.keys == Keys::kFigure || field.keys == Keys::kFigureOrContract;
      json out = json::object();
      for (const Node::Entry& entry : node.entries) {
        const bool known = about_figure && vocabulary;
        out[entry.key] = to_json(*entry.value, field.fields.front(), vocabulary,
                                 known ? vocabulary->unit_of(entry.key) : std::string_view());
      }
      return out;
    }
    default:
      return node.text;
  }
}

}  // namespace warmgate::scenario
