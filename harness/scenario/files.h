// The files that a scenario may pull in: other scenarios and behaviours of its own tree, and the
// presets and behaviours of the product's fixtures. Nothing else, whatever the path says.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/scenario/check.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {

/// The scenario's tree: the nearest folder above the file that is named `scenarios`, else the
/// folder of the file.
std::filesystem::path tree_of(const std::filesystem::path& canonical_file);

/// `given` if that is not empty, else $WARMGATE_FIXTURES, else share/fixtures beside the folder of
/// this program (an unpacked package), else the source tree's fixtures, else
/// share/warmgate/fixtures beside the folder of this program.
std::filesystem::path find_fixtures(const std::filesystem::path& given);

/// A path as users like to see it: relative to the current folder where it lies below.
std::string display(const std::filesystem::path& path);

struct Preset {
  std::string name;
  NodePtr model;     // layer "preset NAME"
  NodePtr drafters;  // may be null
};
struct Behaviour {
  std::string name;  // as the scenario wrote it
  NodePtr overlay;   // seams and drafter, layer "behaviour NAME"; null if the file was wrong
};

class Files {
 public:
  Files(std::filesystem::path fixtures, Problems& problems, const Vocabulary& vocabulary,
        Tainted& tainted)
      : fixtures_(std::move(fixtures)),
        problems_(problems),
        checker_(problems, vocabulary, tainted),
        tainted_(tainted) {}

  /// Opens the tree of a scenario; later paths are held against it.
  void set_tree(const std::filesystem::path& canonical_file) { tree_ = tree_of(canonical_file); }
  /// Says where the relative paths written in `shown_as` start.
  void know(const std::string& shown_as, const std::filesystem::path& canonical_file) {
    folders_[shown_as] = canonical_file.parent_path();
  }
  /// The canonical path that a node names, relative to the file it stands in; nothing, and a
  /// problem, if it is not a file of the tree (links are followed before that is judged).
  std::optional<std::filesystem::path> inside_tree(const Node& node);

  /// Each read once; null with a problem at `node` or in the file.
  const Preset* preset(const Node& node);
  const Behaviour* behaviour(const Node& node);
  /// That there is such a file in fixtures/servers, a problem if not. What it holds is read where
  /// servers are started.
  void server_preset(const Node& node);
  /// Canonical paths of the presets and behaviours that were read.
  const std::vector<std::filesystem::path>& read() const { return read_; }

 private:
  std::optional<std::filesystem::path> fixture(const Node& node, const std::string& folder,
                                               std::string_view what);
  NodePtr read_checked(const std::filesystem::path& path, const Field& field);

  std::filesystem::path fixtures_, tree_;
  std::vector<std::filesystem::path> read_;
  Problems& problems_;
  Checker checker_;
  Tainted& tainted_;
  std::map<std::string, std::filesystem::path> folders_;
  std::map<std::string, Preset> presets_;
  std::map<std::string, Behaviour> behaviours_;
};

}  // namespace warmgate::scenario
