#include "harness/scenario/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "harness/scenario/overlay.h"

namespace warmgate::scenario {
namespace {

namespace fs = std::filesystem;

bool inside(const fs::path& root, const fs::path& path) {
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return end == root.end();
}

std::vector<std::string> yaml_stems(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") out.push_back(it->path().stem().string());
    if (out.size() >= 500) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool looks_like_path(const std::string& name) {
  return name.find('/') != std::string::npos || fs::path(name).extension() == ".yaml" ||
         fs::path(name).extension() == ".yml";
}

}  // namespace

fs::path tree_of(const fs::path& canonical_file) {
  for (fs::path folder = canonical_file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (folder.filename() == "scenarios") return folder;
  }
  return canonical_file.parent_path();
}

fs::path find_fixtures(const fs::path& given) {
  if (!given.empty()) return given;
  if (const char* named = std::getenv("WARMGATE_FIXTURES"); named && *named) return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path share = program.parent_path().parent_path() / "share";
  // An unpacked package, an installation and a tree that was moved or copied have their own, also
  // on the machine and beside the tree that the program was built in. A package's folder is taken
  // however little is left in it: what is missing there must not come from somewhere else.
  for (const fs::path& own : {share / "fixtures", share / "warmgate" / "fixtures"}) {
    if (fs::is_directory(own, error)) return own;
  }
  const fs::path tree = program.parent_path().parent_path().parent_path() / "fixtures";
  if (fs::is_directory(tree / "models", error) && fs::is_directory(tree / "behaviours", error))
    return tree;
#ifdef WARMGATE_SOURCE_FIXTURES
  if (fs::is_directory(WARMGATE_SOURCE_FIXTURES, error)) return WARMGATE_SOURCE_FIXTURES;
#endif
  return share / "warmgate" / "fixtures";
}

std::string display(const fs::path& path) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) return path.string();
  const fs::path relative = path.lexically_relative(here);
  return relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
}

std::optional<fs::path> Files::inside_tree(const Node& node) {
  const auto refuse = [&](const std::string& why) {
    problems_.add(node, why);
    return std::nullopt;
  };
  if (node.text.empty() || node.text.size() > 1024) return refuse("expected the path of a file");
  const fs::path written(node.text);
  if (written.is_absolute()) {
    return refuse(shown(node.text) + " is absolute; paths are relative to the file they stand in");
  }
  const auto folder = folders_.find(*node.place.file);
  const fs::path base = folder == folders_.end() ? tree_ : folder->second;
  // First by the letters of the path, so that nothing outside is even looked at.
  if (!inside(tree_, (base / written).lexically_normal())) {
    return refuse(
        fmt::format("{} leads out of the scenario's tree {}", shown(node.text), display(tree_)));
  }
  std::error_code error;
  const fs::path real = fs::canonical(base / written, error);
  if (error) return refuse(fmt::format("{}: {}", shown(node.text), error.message()));
  if (!inside(tree_, real)) {
    return refuse(fmt::format("{} leads out of the scenario's tree {} through a link",
                              shown(node.text), display(tree_)));
  }
  return real;
}

std::optional<fs::path> Files::fixture(const Node& node, const std::string& folder,
                                       std::string_view what) {
  const fs::path place = fixtures_ / folder;
  const fs::path file = place / (node.text + ".yaml");
  const bool plain = !node.text.empty() && node.text.size() <= 80 &&
                     node.text.find_first_of(std::string("/\0", 2)) == std::string::npos;
  std::error_code error;
  if (plain && fs::is_regular_file(file, error)) return file;
  const auto known = yaml_stems(place);
  if (known.empty()) {
    problems_.add(node, fmt::format("no {} {}: {} is missing or empty; set WARMGATE_FIXTURES", what,
                                    shown(node.text), display(place)));
    return std::nullopt;
  }
  const std::string meant = did_you_mean(node.text, known);
  problems_.add(node, fmt::format("no {} {} in {}{}", what, shown(node.text), display(place),
                                  meant.empty() ? "; there are " + list_of(known) : meant));
  return std::nullopt;
}

NodePtr Files::read_checked(const fs::path& path, const Field& field) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  read_.push_back(error ? path : canonical);
  const NodePtr tree = read_yaml(path, display(path), problems_);
  return tree ? checker_.check(tree, field) : nullptr;
}

const Preset* Files::preset(const Node& node) {
  const auto known = presets_.find(node.text);
  if (known != presets_.end()) return known->second.model ? &known->second : nullptr;
  Preset& preset = presets_[node.text];
  preset.name = node.text;
  if (const auto path = fixture(node, "models", "preset")) {
    if (const NodePtr tree = read_checked(*path, preset_field())) {
      const std::string layer = "preset " + node.text;
      const NodePtr name = tree->find("preset");
      if (name && name->text != path->stem().string()) {
        problems_.add(*name, shown(name->text) + " is not the name of the file");
      }
      preset.model = with_layer(tree->find("model"), layer);
      preset.drafters = with_layer(tree->find("drafters"), layer);
    }
  }
  if (!preset.model) tainted_.insert({"model", "drafter"});
  return preset.model ? &preset : nullptr;
}

void Files::server_preset(const Node& node) {
  const auto path = fixture(node, "servers", "server preset");
  if (!path) {
    tainted_.insert("target");
    return;
  }
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(*path, error);
  if (std::find(read_.begin(), read_.end(), canonical) == read_.end()) read_.push_back(canonical);
}

const Behaviour* Files::behaviour(const Node& node) {
  const bool own = looks_like_path(node.text);
  const std::string key = own ? *node.place.file + "\n" + node.text : node.text;
  const auto known = behaviours_.find(key);
  if (known != behaviours_.end()) return &known->second;
  Behaviour& behaviour = behaviours_[key];
  behaviour.name = node.text;
  const auto path = own ? inside_tree(node) : fixture(node, "behaviours", "behaviour");
  if (path) {
    if (const NodePtr tree = read_checked(*path, behaviour_field())) {
      const NodePtr name = tree->find("behaviour");
      if (name && name->text != path->stem().string()) {
        problems_.add(*name, shown(name->text) + " is not the name of the file");
      }
      behaviour.overlay = with_layer(only(tree, {"seams", "drafter"}), "behaviour " + node.text);
    }
  }
  if (!behaviour.overlay) tainted_.insert("seams");
  return &behaviour;
}

}  // namespace warmgate::scenario
