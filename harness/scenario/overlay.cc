#include "harness/scenario/overlay.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/problems.h"
#include "harness/scenario/scalars.h"

namespace warmgate::scenario {
namespace {

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Keys of the base that a key of the overlay excludes.
bool excluded(const Field& field, const std::string& key, const Node& over) {
  for (const auto& group : field.either) {
    if (contains(group, key)) continue;
    const bool used = std::any_of(over.entries.begin(), over.entries.end(),
                                  [&](const Node::Entry& e) { return contains(group, e.key); });
    if (!used) continue;
    // Excluded only if the key is in some group at all.
    for (const auto& own : field.either) {
      if (contains(own, key)) return true;
    }
  }
  return false;
}

const Field* child_field(const Field* field, std::string_view key) {
  if (!field) return nullptr;
  if (field->type == Type::kObject) return field->find(key);
  if (field->type == Type::kNamed) return &field->fields.front();
  return nullptr;
}

std::shared_ptr<Node> map_node(Place place, std::string path) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::kMap;
  node->place = std::move(place);
  node->path = std::move(path);
  return node;
}

std::shared_ptr<Node> scalar_node(const Node& like, std::string text) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::kScalar;
  node->place = like.place;
  node->path = like.path;
  node->layer = like.layer;
  node->text = std::move(text);
  return node;
}

}  // namespace

NodePtr merge(const NodePtr& base, const NodePtr& over, const Field* field) {
  if (!base) return over;
  if (!over) return base;
  if (!base->is_map() || !over->is_map()) return over;
  auto out = std::make_shared<Node>(*over);
  out->entries.clear();
  for (const Node::Entry& entry : base->entries) {
    if (field && excluded(*field, entry.key, *over)) continue;
    if (const NodePtr mine = over->find(entry.key)) {
      const bool both_maps = mine->is_map() && entry.value->is_map();
      out->entries.push_back(
          {entry.key, entry.place,
           both_maps ? merge(entry.value, mine, child_field(field, entry.key)) : mine});
    } else {
      out->entries.push_back(entry);
    }
  }
  for (const Node::Entry& entry : over->entries) {
    if (!out->find(entry.key)) out->entries.push_back(entry);
  }
  return out;
}

NodePtr with_layer(const NodePtr& node, const std::string& layer) {
  struct Copy {
    std::shared_ptr<const std::string> layer;
    NodePtr of(const NodePtr& original) const {
      auto copy = std::make_shared<Node>(*original);
      copy->layer = layer;
      for (NodePtr& item : copy->items) item = of(item);
      for (Node::Entry& entry : copy->entries) entry.value = of(entry.value);
      return copy;
    }
  };
  return node ? Copy{std::make_shared<const std::string>(layer)}.of(node) : nullptr;
}

NodePtr only(const NodePtr& map, const std::vector<std::string>& keys) {
  if (!map) return nullptr;
  auto out = std::make_shared<Node>(*map);
  std::erase_if(out->entries, [&](const Node::Entry& e) {
    return std::find(keys.begin(), keys.end(), e.key) == keys.end();
  });
  return out;
}

NodePtr without(const NodePtr& map, const std::vector<std::string>& keys) {
  if (!map) return nullptr;
  auto out = std::make_shared<Node>(*map);
  std::erase_if(out->entries, [&](const Node::Entry& e) {
    return std::find(keys.begin(), keys.end(), e.key) != keys.end();
  });
  return out;
}

KeyPath find_key_path(std::string_view path) {
  KeyPath out;
  const Field* field = &overlay_field();
  std::string_view rest = path;
  while (true) {
    if (field->type == Type::kNamed) {
      const std::size_t dot = rest.find('.');
      const bool leaf = field->fields.front().type != Type::kObject;
      const std::string_view key = leaf ? rest : rest.substr(0, dot);
      out.keys.emplace_back(key);
      field = &field->fields.front();
      rest = key.size() == rest.size() ? std::string_view() : rest.substr(key.size() + 1);
    } else if (field->type == Type::kObject) {
      const Field* next = nullptr;
      for (const Field& child : field->fields) {
        const bool fits = rest.substr(0, child.name.size()) == child.name &&
                          (rest.size() == child.name.size() || rest[child.name.size()] == '.');
        if (fits && (!next || child.name.size() > next->name.size())) next = &child;
      }
      if (!next) {
        const auto names = key_names(*field);
        const std::string_view key =
            names.front().find('.') == std::string::npos ? rest.substr(0, rest.find('.')) : rest;
        const std::string meant = did_you_mean(key, names);
        out.why = "unknown key " + shown(key) +
                  (meant.empty() ? "; allowed here: " + list_of(names) : meant);
        return out;
      }
      out.keys.emplace_back(next->name);
      field = next;
      rest = rest.size() == next->name.size() ? std::string_view()
                                              : rest.substr(next->name.size() + 1);
    } else {
      out.why = shown(out.keys.back()) + " has no keys, so " + shown(rest) + " leads nowhere";
      return out;
    }
    if (rest.empty()) break;
  }
  out.field = field;
  return out;
}

NodePtr wrap(const std::vector<std::string>& keys, const NodePtr& value) {
  NodePtr out = value;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    auto map = map_node(value->place, value->path);
    map->layer = value->layer;
    map->entries.push_back({*key, value->place, out});
    out = map;
  }
  return out;
}

NodePtr at(const NodePtr& tree, const std::vector<std::string>& keys) {
  NodePtr node = tree;
  for (const std::string& key : keys) {
    if (!node) return nullptr;
    node = node->find(key);
  }
  return node;
}

const Node& nearest_node(const NodePtr& tree, const std::vector<std::string>& keys) {
  const Node* node = tree.get();
  for (const std::string& key : keys) {
    const NodePtr next = node->find(key);
    if (!next || next->place.line == 0) break;
    node = next.get();
  }
  return *node;
}

NodePtr expand_layers(const NodePtr& overlay) {
  // One more than is legal, so that validate() sees it without a list of any size being built.
  constexpr std::size_t kMost = 512;
  if (!overlay || !overlay->is_map()) return overlay;
  auto out = std::make_shared<Node>(*overlay);
  for (Node::Entry& section : out->entries) {
    if (section.key == "ranks") {
      auto ranks = std::make_shared<Node>(*section.value);
      for (Node::Entry& rank : ranks->entries) rank.value = expand_layers(rank.value);
      section.value = ranks;
    }
    const NodePtr layers = section.key == "model" ? section.value->find("layers") : nullptr;
    if (!layers) continue;
    auto model = std::make_shared<Node>(*without(section.value, {"layers"}));
    auto ratios = std::make_shared<Node>(*layers);
    ratios->items.clear();
    for (const NodePtr& run : layers->items) {
      const NodePtr count = run->find("count");
      const NodePtr ratio = run->find("ratio");
      if (!ratio) continue;  // reported as missing
      const auto times = count ? *read_integer(count->text).value : 1;
      for (std::int64_t i = 0; i < times && ratios->items.size() <= kMost; ++i) {
        ratios->items.push_back(ratio);
      }
    }
    const Place place = layers->place;
    model->entries.push_back({"compress_ratios", place, ratios});
    model->entries.push_back(
        {"num_hidden_layers", place, scalar_node(*layers, std::to_string(ratios->items.size()))});
    section.value = model;
  }
  return out;
}

std::map<std::string, std::string> origins(const NodePtr& tree) {
  struct Walk {
    std::map<std::string, std::string> out;
    void visit(const NodePtr& node, const std::string& path) {
      if (node->is_map()) {
        for (const Node::Entry& entry : node->entries) {
          visit(entry.value, path.empty() ? entry.key : path + "." + entry.key);
        }
        return;
      }
      const std::string layer = node->layer ? *node->layer : "scenario";
      if (node->place.line == 0) {
        out[path] = layer;
      } else if (layer == "--set") {
        out[path] = *node->place.file;  // says --set itself
      } else {
        out[path] = fmt::format("{}:{} ({})", *node->place.file, node->place.line, layer);
      }
    }
  };
  Walk walk;
  if (tree) walk.visit(tree, "");
  return std::move(walk.out);
}

NodePtr default_layer() {
  struct Defaults {
    static NodePtr of(const Field& field) {
      if (!field.fallback.empty()) {
        Problems none;
        const NodePtr value = parse_yaml(field.fallback, "default", none);
        return value;
      }
      if (field.type != Type::kObject) return nullptr;
      auto map = map_node({}, "");
      for (const Field& child : field.fields) {
        if (NodePtr value = of(child)) map->entries.push_back({std::string(child.name), {}, value});
      }
      return map->entries.empty() ? nullptr : NodePtr(map);
    }
    // No file, no line: the origin of a default is the word alone.
    static NodePtr placeless(const NodePtr& node) {
      auto copy = std::make_shared<Node>(*node);
      copy->place = {};
      for (NodePtr& item : copy->items) item = placeless(item);
      for (Node::Entry& entry : copy->entries) entry.value = placeless(entry.value);
      return copy;
    }
  };
  static const NodePtr layer =
      with_layer(Defaults::placeless(Defaults::of(overlay_field())), "default");
  return layer;
}

}  // namespace warmgate::scenario
