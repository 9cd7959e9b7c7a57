// Holds a YAML tree against the table of fields: names, types, units, ranges.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/fields.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {

/// Names that a file may use beyond those of the table: the built-in figures and contracts, and
/// those that a run adds from outside the tree.
struct Vocabulary {
  std::map<std::string, std::string> figures;  // name → unit ("s", "bytes", …)
  std::vector<std::string> contracts;

  /// The built-in names and those of `options`.
  static Vocabulary with(const LoadOptions& options);
  std::vector<std::string> figure_names() const;
  /// "" for an unknown figure.
  std::string_view unit_of(const std::string& figure) const;
};

/// Sections (model, limits, …) in which something was wrong: what follows from their values is not
/// judged, so that one typo does not raise a second error that is none.
using Tainted = std::set<std::string>;

class Checker {
 public:
  Checker(Problems& problems, const Vocabulary& vocabulary, Tainted& tainted)
      : problems_(problems), vocabulary_(vocabulary), tainted_(tainted) {}

  /// The tree without what was wrong with it (each with a problem); null if nothing is left.
  /// `unit` is that of the figure that the node is about. With `partial`, required keys may lack
  /// (they come from a file that this one extends).
  NodePtr check(const NodePtr& node, const Field& field, std::string_view unit = "",
                bool partial = false);

 private:
  NodePtr scalar(const NodePtr& node, const Field& field, std::string_view unit);
  NodePtr list(const NodePtr& node, const Field& field, std::string_view unit);
  NodePtr object(const NodePtr& node, const Field& field, std::string_view unit, bool partial);
  NodePtr named(const NodePtr& node, const Field& field);
  NodePtr expectation(const NodePtr& node, const Field& field);
  NodePtr matrix(const NodePtr& node);
  void refuse_mixed(const Node& node, const Field& field);
  NodePtr wrong(const Node& node, const std::string& message);
  void wrong_at(const Place& place, const std::string& path, const std::string& message);
  std::string key_error(const std::string& key, Keys keys) const;

  Problems& problems_;
  const Vocabulary& vocabulary_;
  Tainted& tainted_;
};

/// What is wrong with a scalar as a value of `field`, "" if nothing.
std::string scalar_error(const Node& node, const Field& field, std::string_view unit,
                         const Vocabulary& vocabulary);

/// A checked tree as JSON: integers, bytes and seconds as numbers, bounds as their text,
/// one-or-more as a list. `vocabulary` gives the units of figures; it may be null where none
/// occurs.
nlohmann::json to_json(const Node& node, const Field& field, const Vocabulary* vocabulary = nullptr,
                       std::string_view unit = "");

}  // namespace warmgate::scenario
