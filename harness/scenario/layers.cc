#include "harness/scenario/layers.h"

#include <fmt/format.h>

#include "harness/scenario/overlay.h"

namespace warmgate::scenario {
namespace {

std::string brief(const Node& value) {
  if (value.is_scalar()) return value.text;
  std::string out;
  for (const NodePtr& item : value.items) out += (out.empty() ? "" : "+") + brief(*item);
  return out.empty() ? "{…}" : out;
}

// Every combination of the matrix: name part "[a=1,b=2]" and its overlay.
struct Combination {
  std::string name;
  NodePtr overlay;
};
std::vector<Combination> combinations(const NodePtr& matrix, Problems& problems) {
  std::vector<Combination> out = {{"", nullptr}};
  if (!matrix) return out;
  for (const Node::Entry& dimension : matrix->entries) {
    std::vector<Combination> next;
    const auto keys = find_key_path(dimension.key).keys;
    if (out.size() * dimension.value->items.size() > kMostVariants) {
      problems.add(dimension.place, dimension.value->path,
                   fmt::format("the matrix gives more than {} variants", kMostVariants));
      return {};
    }
    for (const Combination& so_far : out) {
      for (const NodePtr& value : dimension.value->items) {
        next.push_back(
            {so_far.name + (so_far.name.empty() ? "" : ",") + dimension.key + "=" + brief(*value),
             merge(so_far.overlay, wrap(keys, value), &overlay_field())});
      }
    }
    out = std::move(next);
  }
  for (Combination& one : out) {
    if (!one.name.empty()) one.name = "[" + one.name + "]";
    one.overlay = with_layer(expand_layers(one.overlay), "matrix");
  }
  return out;
}

std::string text_at(const NodePtr& tree, const std::vector<std::string>& keys) {
  const NodePtr node = at(tree, keys);
  return node && node->is_scalar() ? node->text : "";
}

// One overlay on a tree: first its behaviours, left to right, then its own keys.
void lay(Merged& merged, const NodePtr& overlay, Files& files) {
  if (!overlay) return;
  const auto use = [&](const Node& name) {
    const Behaviour* behaviour = files.behaviour(name);
    merged.behaviours.push_back(behaviour->name);
    merged.tree = merge(merged.tree, behaviour->overlay, &overlay_field());
  };
  if (const NodePtr names = overlay->find("behaviour")) {
    if (names->is_scalar()) use(*names);
    for (const NodePtr& name : names->items) use(*name);
  }
  merged.tree = merge(merged.tree, without(overlay, {"behaviour"}), &overlay_field());
}

}  // namespace

NodePtr base_overlay(const NodePtr& scenario) {
  return with_layer(expand_layers(only(scenario, key_names(overlay_field()))), "scenario");
}

std::vector<SetOverlay> read_sets(const std::vector<std::string>& texts, const NodePtr& scenario,
                                  Checker& checker, Problems& problems) {
  std::vector<SetOverlay> out;
  for (const std::string& text : texts) {
    const std::string shown_as = "--set " + text;
    const Place whole{std::make_shared<const std::string>(shown_as), 0, 0};
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.add(whole, "", "expected KEY.PATH=VALUE");
      continue;
    }
    std::string path = text.substr(0, equals);
    SetOverlay set;
    if (path.rfind("variants.", 0) == 0) {
      const NodePtr variants = scenario->find("variants");
      const std::size_t dot = path.find('.', 9);
      set.variant = path.substr(9, dot == std::string::npos ? dot : dot - 9);
      std::vector<std::string> names;
      for (const auto& entry : variants ? variants->entries : std::vector<Node::Entry>{}) {
        names.push_back(entry.key);
      }
      if (dot == std::string::npos || !variants || !variants->find(set.variant)) {
        problems.add(whole, path,
                     "no variant " + shown(set.variant) + did_you_mean(set.variant, names));
        continue;
      }
      path = path.substr(dot + 1);
    }
    const KeyPath target = find_key_path(path);
    if (!target.field) {
      problems.add(whole, path, target.why);
      continue;
    }
    const std::string written = text.substr(equals + 1);
    const std::size_t first = written.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || written[first] == '#') {
      problems.add(whole, path, "nothing after '='; give a value, or leave this --set out");
      continue;
    }
    const NodePtr value = parse_yaml(written, shown_as, problems);
    const NodePtr good = value ? checker.check(value, *target.field) : nullptr;
    if (!good) continue;
    set.overlay = with_layer(expand_layers(wrap(target.keys, good)), "--set");
    out.push_back(std::move(set));
  }
  return out;
}

std::vector<Plan> plan_variants(const NodePtr& scenario, Problems& problems) {
  const auto matrix = combinations(scenario->find("matrix"), problems);
  const NodePtr variants = scenario->find("variants");
  std::vector<Plan> out;
  const auto add = [&](const std::string& base, const NodePtr& overlay) {
    for (const Combination& one : matrix) {
      Plan plan{base + one.name, base, {}};
      if (overlay) plan.overlays.push_back(overlay);
      if (one.overlay) plan.overlays.push_back(one.overlay);
      out.push_back(std::move(plan));
    }
  };
  if (variants) {
    if (variants->entries.size() * matrix.size() > kMostVariants) {
      problems.add(*variants, fmt::format("with the matrix more than {} variants", kMostVariants));
      return {};
    }
    for (const Node::Entry& entry : variants->entries) {
      add(entry.key, with_layer(expand_layers(entry.value), "variant " + entry.key));
    }
  }
  if (out.empty()) add("default", nullptr);
  return out;
}

Merged merge_layers(const NodePtr& scenario, const Plan& plan, const std::vector<SetOverlay>& sets,
                    const std::string& device, Files& files) {
  std::vector<NodePtr> overlays = plan.overlays;
  for (const SetOverlay& set : sets) {
    if (set.variant.empty() || set.variant == plan.base_name) overlays.push_back(set.overlay);
  }
  const NodePtr base = base_overlay(scenario);
  // Which target, hence which device, is settled first: the device decides about a layer.
  NodePtr target = merge(default_layer(), base, &overlay_field());
  for (const NodePtr& overlay : overlays) target = merge(target, overlay, &overlay_field());
  Merged merged;
  merged.device = text_at(target, {"target", "native", "device"});
  if (!merged.device.empty() && !device.empty()) merged.device = device;

  lay(merged, base, files);
  if (!merged.device.empty()) {
    const NodePtr overlay = without(at(scenario, {"devices", merged.device}), {"expect"});
    lay(merged, with_layer(expand_layers(overlay), "device " + merged.device), files);
  }
  for (const NodePtr& overlay : overlays) lay(merged, overlay, files);

  NodePtr below = default_layer();
  if (const NodePtr name = at(merged.tree, {"model", "preset"})) {
    if (const Preset* preset = files.preset(*name)) {
      below = merge(below, wrap({"model"}, preset->model), &overlay_field());
      const std::string method = text_at(merged.tree, {"drafter", "method"});
      if (const NodePtr constants = at(preset->drafters, {method})) {
        below = merge(below, wrap({"drafter"}, constants), &overlay_field());
      }
    }
  }
  merged.tree = merge(below, merged.tree, &overlay_field());
  return merged;
}

}  // namespace warmgate::scenario
