// The schema and the page of the language against the table that drives the reader.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "harness/scenario/fields.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/test_files.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

const json& follow(const json& root, const json& node) {
  if (!node.contains("$ref")) return node;
  return root.at(json::json_pointer(node["$ref"].get<std::string>().substr(1)));
}

void every_key(const json& root, const json& node_in, const Field& field, const std::string& path) {
  const json& given = follow(root, node_in);
  // What a single value may stand for is offered beside it.
  const json& node = field.short_key.empty() ? given : follow(root, given.at("anyOf")[0]);
  if (field.type == Type::kObject) {
    ASSERT_TRUE(node.contains("properties")) << path;
    EXPECT_EQ(node["properties"].size(), field.fields.size()) << path;
    EXPECT_EQ(node["additionalProperties"], false) << path;
    for (const Field& child : field.fields) {
      const std::string name(child.name);
      ASSERT_TRUE(node["properties"].contains(name)) << path << "." << name;
      every_key(root, node["properties"][name], child, path + "." + name);
    }
  } else if (field.type == Type::kNamed) {
    if (node["additionalProperties"].is_object()) {
      every_key(root, node["additionalProperties"], field.fields.front(), path + ".*");
    }
  } else if (field.type == Type::kList) {
    every_key(root, node.at("items"), field.fields.front(), path + "[]");
  } else if (field.type == Type::kChoice) {
    EXPECT_EQ(node.at("enum").size(), field.choices.size()) << path;
  } else if (field.type == Type::kExpect) {
    every_key(root, node.at("anyOf")[0], field.fields.front(), path);
  }
}

TEST(Schema, HoldsEveryKeyOfTheTable) {
  const json out = schema();
  EXPECT_EQ(out["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(out["required"], json::array({"scenario"}));
  every_key(out, out, scenario_field(), "");
}

TEST(Schema, EveryReferenceLeadsSomewhere) {
  const json out = schema();
  int references = 0;
  const std::function<void(const json&)> walk = [&](const json& node) {
    if (node.is_object() && node.contains("$ref") && node["$ref"].is_string()) {
      ++references;
      EXPECT_NO_THROW((void)follow(out, node)) << node["$ref"];
    }
    if (node.is_structured()) {
      for (const json& child : node) walk(child);
    }
  };
  walk(out);
  EXPECT_GT(references, 10);
  EXPECT_LT(out.dump().size(), 200000u);
}

// A structural reading of the schema, enough to hold scenarios against it.
std::string violation(const json& root, const json& schema_in, const NodePtr& node,
                      const std::string& path) {
  const json& rule = follow(root, schema_in);
  if (rule.contains("not")) return path + ": refused";
  if (rule.contains("anyOf")) {
    for (const json& option : rule["anyOf"]) {
      if (violation(root, option, node, path).empty()) return "";
    }
    return path + ": no option fits";
  }
  json types = rule.value("type", json(""));
  if (!types.is_array()) types = json::array({types});
  const auto is = [&](const char* type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  if (node->is_map()) {
    if (!is("object")) return path + ": a map is not expected";
    for (const auto& entry : node->entries) {
      const std::string child = path + "." + entry.key;
      if (rule.contains("properties") && rule["properties"].contains(entry.key)) {
        const auto why = violation(root, rule["properties"][entry.key], entry.value, child);
        if (!why.empty()) return why;
      } else if (rule.value("additionalProperties", json(true)) == json(false)) {
        return child + ": not a property";
      } else if (rule["additionalProperties"].is_object()) {
        const auto why = violation(root, rule["additionalProperties"], entry.value, child);
        if (!why.empty()) return why;
      }
    }
    const json required = rule.value("required", json::array());
    for (const json& key : required) {
      if (!node->find(key.get<std::string>())) return path + ": lacks " + key.get<std::string>();
    }
    return "";
  }
  if (node->is_list()) {
    if (!is("array")) return path + ": a list is not expected";
    for (const auto& item : node->items) {
      if (!rule.contains("items")) continue;
      const auto why = violation(root, rule["items"], item, path + "[]");
      if (!why.empty()) return why;
    }
    return "";
  }
  if (rule.contains("enum")) {
    for (const json& value : rule["enum"]) {
      if ((value.is_string() ? value.get<std::string>() : value.dump()) == node->text) return "";
    }
    return path + ": " + node->text + " is none of the enum";
  }
  if (is("object") || is("array")) return path + ": a value is not expected";
  return "";
}

TEST(Schema, AcceptsEveryScenarioOfTheTree) {
  const json out = schema();
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  const auto files = find_scenarios({std::string(root ? root : ".") + "/scenarios"});
  ASSERT_GE(files.size(), 2u);
  for (const auto& file : files) {
    Problems problems;
    const NodePtr tree = read_yaml(file, file.string(), problems);
    ASSERT_TRUE(tree) << file;
    EXPECT_EQ(violation(out, out, tree, ""), "") << file;
  }
  Problems problems;
  EXPECT_NE(violation(out, out, parse_yaml("scenario: s\nlimit: {}\n", "f", problems), ""), "");
  EXPECT_NE(violation(out, out, parse_yaml("about: s\n", "f", problems), ""), "");
  EXPECT_NE(
      violation(out, out, parse_yaml("scenario: s\nseams: {jit.compiler: x}\n", "f", problems), ""),
      "");
}

void names_of(const Field& field, std::set<std::string>& out) {
  for (const Field& child : field.fields) {
    if (!child.name.empty()) out.insert(std::string(child.name));
    names_of(child, out);
  }
}

TEST(LanguagePage, NamesEveryKey) {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  std::ifstream in(std::string(root ? root : ".") + "/scenarios/README.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  ASSERT_FALSE(page.empty());
  std::set<std::string> keys;
  names_of(scenario_field(), keys);
  for (const std::string& key : keys) {
    EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key << " is not in the page";
  }
}

}  // namespace
}  // namespace warmgate::scenario
