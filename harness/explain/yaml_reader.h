// What is common to every part of a grammar's file: maps whose keys are known, texts, numbers, and
// a problem with its place for whatever is something else.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "harness/explain/grammar.h"
#include "harness/scenario/problems.h"

namespace warmgate::explain::internal {

class YamlReader {
 protected:
  using Node = scenario::Node;
  using NodePtr = scenario::NodePtr;
  using Problems = scenario::Problems;

  explicit YamlReader(Problems& problems) : problems_(problems) {}

  bool keys(const Node& node, const std::vector<std::string>& allowed) {
    if (!node.is_map()) return problems_.add(node, "a map is wanted here"), false;
    for (const Node::Entry& entry : node.entries) {
      if (std::find(allowed.begin(), allowed.end(), entry.key) != allowed.end()) continue;
      problems_.add(entry.place, entry.value->path,
                    "unknown key" + scenario::did_you_mean(entry.key, allowed));
    }
    return true;
  }
  std::string text(const Node& node) {
    if (!node.is_scalar()) problems_.add(node, "a text is wanted here");
    return node.text;
  }
  bool flag(const Node& node) {
    if (node.text != "true" && node.text != "false") problems_.add(node, "true or false");
    return node.text == "true";
  }
  double number(const Node& node) {
    char* end = nullptr;
    const double value = std::strtod(node.text.c_str(), &end);
    if (!node.is_scalar() || node.text.empty() || *end != '\0') problems_.add(node, "a number");
    return value;
  }
  std::string phase(const Node& node, bool may_doubt = false) {
    const std::string word = text(node);
    const bool doubts = may_doubt && word.ends_with('?');
    const std::string name = doubts ? word.substr(0, word.size() - 1) : word;
    const auto& names = phase_names();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      problems_.add(node, "no phase" + scenario::did_you_mean(name, names));
    }
    return word;
  }
  template <typename F>
  void each(const NodePtr& list, F&& then) {
    if (!list) return;
    if (!list->is_list()) return problems_.add(*list, "a list is wanted here");
    for (const NodePtr& item : list->items) then(*item);
  }
  template <typename F>
  void for_map(const NodePtr& map, F&& then) {
    if (!map) return;
    if (!map->is_map()) return problems_.add(*map, "a map is wanted here");
    for (const Node::Entry& entry : map->entries) then(entry.key, *entry.value);
  }
  void strings(const NodePtr& node, std::vector<std::string>& out) {
    if (node && node->is_scalar()) return out.push_back(node->text);
    each(node, [&](const Node& item) { out.push_back(text(item)); });
  }
  template <typename Enum>
  Enum choice(const Node& node, std::initializer_list<std::pair<const char*, Enum>> values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) {
      if (node.text == name) return value;
      names.push_back(name);
    }
    problems_.add(node, "one of " + scenario::list_of(names));
    return values.begin()->second;
  }

  Problems& problems_;
};

}  // namespace warmgate::explain::internal
