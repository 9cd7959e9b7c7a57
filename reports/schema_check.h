// As much of JSON Schema as our schemas use, for tests: type, enum, const, required, properties,
// additionalProperties, items, minimum, $ref to #/$defs. An unknown keyword is an error, so that a
// schema cannot promise what nobody checks.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace warmgate::reports {

class SchemaCheck {
 public:
  explicit SchemaCheck(nlohmann::json schema) : root_(std::move(schema)) {}

  /// Every place where `value` is not as the schema says; empty if it conforms.
  std::vector<std::string> problems(const nlohmann::json& value) {
    problems_.clear();
    check(value, root_, "");
    return problems_;
  }

 private:
  static bool is_type(const nlohmann::json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return false;
  }

  void check(const nlohmann::json& value, const nlohmann::json& schema, const std::string& path) {
    if (schema.contains("$ref")) {
      const std::string ref = schema["$ref"];
      check(value, root_.at(nlohmann::json::json_pointer(ref.substr(1))), path);
      return;
    }
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "type") {
        bool any = false;
        const auto types = rule.is_array() ? rule : nlohmann::json::array({rule});
        for (const auto& type : types) any = any || is_type(value, type);
        if (!any) say(path, "is not of type " + rule.dump());
      } else if (keyword == "enum") {
        if (std::find(rule.begin(), rule.end(), value) == rule.end())
          say(path, "is none of " + rule.dump());
      } else if (keyword == "const") {
        if (value != rule) say(path, "is not " + rule.dump());
      } else if (keyword == "minimum") {
        if (value.is_number() && value < rule) say(path, "is below " + rule.dump());
      } else if (keyword == "required") {
        for (const auto& name : rule) {
          if (value.is_object() && !value.contains(name.get<std::string>()))
            say(path, "lacks " + name.dump());
        }
      } else if (keyword == "properties") {
        if (!value.is_object()) continue;
        for (const auto& [name, sub] : rule.items()) {
          if (value.contains(name)) check(value[name], sub, path + "/" + name);
        }
      } else if (keyword == "additionalProperties") {
        extra(value, schema, rule, path);
      } else if (keyword == "items") {
        if (!value.is_array()) continue;
        for (std::size_t i = 0; i < value.size(); ++i)
          check(value[i], rule, path + "/" + std::to_string(i));
      } else if (!ignored().count(keyword)) {
        say(path, "schema keyword " + keyword + " is not checked by anybody");
      }
    }
  }

  void extra(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& rule,
             const std::string& path) {
    if (!value.is_object()) return;
    for (const auto& [name, item] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(name)) continue;
      if (rule.is_boolean() && !rule.get<bool>()) say(path, "has an unknown field " + name);
      if (rule.is_object()) check(item, rule, path + "/" + name);
    }
  }

  static const std::set<std::string>& ignored() {
    static const std::set<std::string> words = {"$schema", "$id", "$defs", "title", "description"};
    return words;
  }

  void say(const std::string& path, const std::string& what) {
    problems_.push_back((path.empty() ? "the document" : path) + " " + what);
  }

  nlohmann::json root_;
  std::vector<std::string> problems_;
};

}  // namespace warmgate::reports
