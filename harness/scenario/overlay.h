// Layers of values: merging one over another, key paths, and where each value came from.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/fields.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {

/// `over` laid on `base`: maps key by key, lists and single values replaced. Keys of `base` that
/// exclude (Field::either) a key of `over` are dropped. Either may be null. `field` may be null.
NodePtr merge(const NodePtr& base, const NodePtr& over, const Field* field);

/// A copy whose every node belongs to `layer`.
NodePtr with_layer(const NodePtr& node, const std::string& layer);
/// A copy of a map with only / without the named keys.
NodePtr only(const NodePtr& map, const std::vector<std::string>& keys);
NodePtr without(const NodePtr& map, const std::vector<std::string>& keys);

/// Where a key path of an overlay leads. Names with dots in them (seams) are found too.
struct KeyPath {
  std::vector<std::string> keys;
  const Field* field = nullptr;  // null: no such key, and why
  std::string why;
};
KeyPath find_key_path(std::string_view path);
/// {keys[0]: {keys[1]: … value}}
NodePtr wrap(const std::vector<std::string>& keys, const NodePtr& value);
/// The node at the end of the keys, null if the tree has none.
NodePtr at(const NodePtr& tree, const std::vector<std::string>& keys);
/// The place nearest to the end of the keys that the tree has, and the key path of that node.
const Node& nearest_node(const NodePtr& tree, const std::vector<std::string>& keys);

/// model.layers as compress_ratios and num_hidden_layers, also in ranks; otherwise the same tree.
NodePtr expand_layers(const NodePtr& overlay);

/// Every leaf (single value or list) of the tree: key path → "file:line (layer)".
std::map<std::string, std::string> origins(const NodePtr& tree);

/// The values that the table gives where nobody else does, as the lowest layer ("default").
NodePtr default_layer();

}  // namespace warmgate::scenario
