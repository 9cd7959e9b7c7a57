// YAML as a tree of ours: every value keeps its place, its key path and the layer it came from.
// Built from yaml-cpp's events rather than from its nodes, because those keep duplicate keys
// silently, forget whether a scalar was quoted and expand aliases without bound.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::scenario {

class Problems;

struct Place {
  std::shared_ptr<const std::string> file;  // as it is shown to the user
  int line = 0, column = 0;                 // 1-based
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry {
    std::string key;
    Place place;  // of the key
    NodePtr value;
  };
  Kind kind = Kind::kNull;
  Place place;
  std::string path;            // key path in its own file, e.g. variants.A.limits.max_model_len
  std::string text;            // kScalar
  bool quoted = false;         // kScalar: "5" is text, 5 may be a number
  std::vector<NodePtr> items;  // kList
  std::vector<Entry> entries;  // kMap, in file order, keys distinct
  /// Which layer the value belongs to: "scenario", "behaviour x", "variant A", …; null until
  /// with_layer().
  std::shared_ptr<const std::string> layer;
  std::size_t weight = 1;  // nodes in this tree, aliases expanded
  std::size_t height = 1;

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  /// The value of a key of a map; null if there is none or this is no map.
  NodePtr find(std::string_view key) const;
};

inline constexpr std::size_t kMaxFileBytes = 256 * 1024;
inline constexpr std::size_t kMaxNodes = 20000;  // aliases expanded
inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxKeyBytes = 128;

/// Exactly one document. Null, with at least one problem added, if the text is no YAML, too deep,
/// too large, not UTF-8, has several documents, tabs as indentation, tags, merge keys, or aliases
/// that expand beyond kMaxNodes. Duplicate keys are problems too, but the tree is returned (first
/// value wins) so that the rest of the file is checked in the same go.
NodePtr parse_yaml(std::string_view text, const std::string& file, Problems& problems);
/// The same for a regular file of at most kMaxFileBytes; never blocks on a pipe or device.
NodePtr read_yaml(const std::filesystem::path& path, const std::string& shown_as,
                  Problems& problems);

}  // namespace warmgate::scenario
