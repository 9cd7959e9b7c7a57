// What the entries of fixtures/known and fixtures/outside have in common: texts, and globs over
// them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/problems.h"
#include "harness/trace/glob.h"

namespace warmgate::explain::internal {

inline std::string text_of(const scenario::Node& node, std::string_view key) {
  const scenario::NodePtr value = node.find(key);
  return value && value->is_scalar() ? value->text : "";
}

/// One text or a list of them.
inline std::vector<std::string> texts_of(const scenario::Node& node, std::string_view key) {
  const scenario::NodePtr value = node.find(key);
  std::vector<std::string> out;
  if (!value) return out;
  if (value->is_scalar()) out.push_back(value->text);
  for (const scenario::NodePtr& item : value->items) out.push_back(item->text);
  return out;
}

inline bool any_matches(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return trace::glob_match(glob, text); });
}

}  // namespace warmgate::explain::internal
