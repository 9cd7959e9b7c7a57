// Collects everything that is wrong, so that a person sees all of it in one go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {

/// Problems of one call of load_scenario. Equal ones (a base value that is wrong in every variant)
/// are kept once.
class Problems {
 public:
  /// At most this many are kept; a file that is wrong in every line needs no more.
  static constexpr std::size_t kMost = 100;

  void add(const Place& place, std::string key_path, std::string message);
  void add(const Node& node, std::string message) {
    add(node.place, node.path, std::move(message));
  }
  bool empty() const { return problems_.empty(); }
  /// How many were told of, also those that are not kept: whoever asks whether there are more than
  /// before must not take a full list for a good file.
  std::size_t size() const { return told_; }
  /// Throws ScenarioError, sorted by file and line, unless there are none.
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
  std::size_t told_ = 0;
};

/// The candidate nearest to `name` if it is near enough to be what was meant (Damerau-Levenshtein,
/// case and `-`/`_` ignored).
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);
/// "; did you mean x?" or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
/// "a, b, c", shortened to the first 12 with the number of the others.
std::string list_of(const std::vector<std::string>& names);
/// Text from a file as it may be shown: quoted, control bytes masked, at most 60 bytes.
std::string shown(std::string_view text);

}  // namespace warmgate::scenario
