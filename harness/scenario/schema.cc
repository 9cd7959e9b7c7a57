// The table of fields as JSON Schema, for editors.
#include <nlohmann/json.hpp>

#include "harness/scenario/contract_names.h"
#include "harness/scenario/fields.h"
#include "harness/scenario/scalars.h"
#include "harness/scenario/scenario.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

class SchemaWriter {
 public:
  json root() {
    json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"$id", "warmgate-scenario/1.0"},
                {"title", "warmgate scenario"}};
    json body = object(scenario_field());
    out.update(body);
    out["required"] = json::array({"scenario"});
    out["$defs"] = defs_;
    return out;
  }

 private:
  static json numeric(const Field& field, const char* type) {
    json out = {{"type", type}};
    if (field.min < field.max || field.max != 0) {
      out["minimum"] = number(field.min);
      out["maximum"] = number(field.max);
    }
    return out;
  }
  static json number(double value) {
    const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
    return whole ? json(static_cast<std::int64_t>(value)) : json(value);
  }
  static json text_or(json other) {
    return {{"anyOf", json::array({std::move(other), {{"type", "string"}}})}};
  }

  json object(const Field& field) {
    json out = {{"type", "object"}, {"additionalProperties", false}};
    json required = json::array();
    for (const Field& child : field.fields) {
      out["properties"][std::string(child.name)] = of(child);
      if (child.required) required.push_back(std::string(child.name));
    }
    if (!required.empty()) out["required"] = std::move(required);
    return out;
  }

  // Names that are known are offered, others pass: metrics and contracts may come from outside.
  json open_map(const Field& field) {
    json out = {{"type", "object"}, {"additionalProperties", of(field.fields.front())}};
    const auto offer = [&](std::string_view name) {
      out["properties"][std::string(name)] = out["additionalProperties"];
    };
    if (field.keys == Keys::kFigure || field.keys == Keys::kFigureOrContract) {
      for (const trace::FigureRule& figure : trace::figures()) offer(figure.name);
    }
    if (field.keys == Keys::kFigureOrContract) {
      for (const ContractName& contract : contract_names()) offer(contract.name);
    }
    if (field.keys == Keys::kPhaseOrDefault) {
      for (const std::string_view phase : trace::phases()) offer(phase);
      offer("default");
      out["additionalProperties"] = false;
    }
    if (field.keys == Keys::kRank) out["propertyNames"] = {{"pattern", "^(0|[1-9][0-9]?)$"}};
    if (field.keys == Keys::kVariant || field.keys == Keys::kMember || field.keys == Keys::kStore) {
      out["propertyNames"] = {{"pattern", "^[A-Za-z0-9._-]+$"}};
    }
    return out;
  }

  // Sections appear in many places; each is written once.
  json shared(const Field& field, json body) {
    const std::string name(field.name);
    const auto known = defs_.find(name);
    if (known == defs_.end()) {
      defs_[name] = std::move(body);
    } else if (*known != body) {
      return body;
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  json of(const Field& field) {
    json out = bare(field);
    if (!field.meaning.empty() && !out.contains("$ref")) out["description"] = field.meaning;
    return out;
  }

  json bare(const Field& field) {
    switch (field.type) {
      case Type::kInteger: {
        json out = numeric(field, "integer");
        for (const std::string_view choice : field.choices) {
          out["enum"].push_back(*read_integer(choice).value);
        }
        return out;
      }
      case Type::kReal:
        return numeric(field, "number");
      case Type::kBool:
        return {{"type", "boolean"}};
      case Type::kName:
        return {{"type", "string"}, {"pattern", "^[A-Za-z0-9._-]+$"}};
      case Type::kChoice: {
        json out = {{"type", "string"}, {"enum", json::array()}};
        for (const std::string_view choice : field.choices) out["enum"].push_back(choice);
        if (!field.fallback.empty()) out["default"] = field.fallback;
        return out;
      }
      case Type::kContract: {
        json names = {{"enum", json::array()}};
        for (const ContractName& contract : contract_names())
          names["enum"].push_back(contract.name);
        return text_or(std::move(names));
      }
      case Type::kBytes:
        return text_or(numeric(field, "integer"));
      case Type::kSeconds:
        return text_or(numeric(field, "number"));
      case Type::kFigureValue:
      case Type::kBound:
        return text_or({{"type", "number"}});
      case Type::kPercent:
        return {{"type", "string"}, {"pattern", "%$"}};
      case Type::kReference:
        return text_or({{"type", "integer"}});
      case Type::kDate:
        return {{"type", "string"}, {"format", "date"}};
      case Type::kPort:
        return {
            {"anyOf", json::array({{{"enum", json::array({"auto", "none"})}},
                                   {{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}}})}};
      case Type::kAny:
        return json::object();
      case Type::kArch:
        return {{"type", "string"}, {"pattern", "^sm_[0-9]{2,3}[af]?$"}};
      case Type::kList: {
        json out = {{"type", "array"}, {"items", of(field.fields.front())}};
        if (field.min_items > 0) out["minItems"] = field.min_items;
        out["maxItems"] = field.max_items;
        return out;
      }
      case Type::kOneOrMore: {
        const json item = of(field.fields.front());
        return {{"anyOf", json::array({item, {{"type", "array"}, {"items", item}}})}};
      }
      case Type::kObject: {
        json out = field.name.empty() ? object(field) : shared(field, object(field));
        return field.short_key.empty() ? out : text_or(std::move(out));
      }
      case Type::kNamed:
        return open_map(field);
      case Type::kExpect: {
        const json one = of(field.fields.front());
        return {{"anyOf", json::array({one, {{"type", "object"}, {"additionalProperties", one}}})}};
      }
      case Type::kMatrix:
        return {{"type", "object"}, {"additionalProperties", {{"type", "array"}, {"minItems", 1}}}};
      case Type::kRefused:
        return json{{"not", json::object()}};
      case Type::kText:
        break;
    }
    return {{"type", json::array({"string", "number", "boolean"})}};
  }

  json defs_ = json::object();
};

}  // namespace

nlohmann::json schema() { return SchemaWriter().root(); }

}  // namespace warmgate::scenario
