// owned-resources: what a phase requires of a layer, the layer owns.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/profile_only.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kOwnedResources = "owned-resources";

struct Layer {
  std::string kind, role;
  std::vector<std::string> owns;  // sorted
  std::size_t event = 0;
};
using Layers = std::map<std::pair<int, int>, Layer>;  // (rank, layer)

Layers layers_of(const View& view) {
  Layers out;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev != "layer" || layer_of(e) < 0) continue;
    Layer layer{std::string(text(e, "kind")), std::string(text(e, "role")), e.strings("owns"), i};
    std::sort(layer.owns.begin(), layer.owns.end());
    out[{rank_of(e), layer_of(e)}] = std::move(layer);  // announced again: the later one holds
  }
  return out;
}

const Layer* find(const Layers& layers, int rank, int id) {
  auto it = layers.find({rank, id});
  if (it == layers.end() && rank != 0) it = layers.find({0, id});  // ranks own the same by default
  return it == layers.end() ? nullptr : &it->second;
}

std::string layer_list(const std::vector<int>& ids) {
  if (ids.size() <= 4) return fmt::format("{}", fmt::join(ids, ", "));
  return fmt::format("{}, {}, ..., {}", ids[0], ids[1], ids.back());
}

std::string owned_text(const Layer* layer) {
  if (!layer) return "the layer was never announced";
  if (layer->owns.empty()) return "owns nothing";
  return fmt::format("owns {}", fmt::join(layer->owns, ", "));
}

class OwnedResources : public Contract {
 public:
  std::string_view name() const override { return kOwnedResources; }
  std::string_view promise() const override {
    return "what a phase requires of a layer is among what that layer owns";
  }
  std::vector<std::string> needs() const override { return {"layer", "requires"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const Layers layers = layers_of(view);
    Fold fold;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev != "requires") continue;
      const std::string resource(text(e, "resource"));
      const int id = layer_of(e), rank = rank_of(e);
      const Layer* layer = find(layers, rank, id);
      const bool denied = !e.flag("owned", true);
      const bool listed =
          layer && std::binary_search(layer->owns.begin(), layer->owns.end(), resource);
      if (listed && !denied) continue;
      // The engine as a whole owns what no layer announces.
      if (id < 0 && !denied) continue;
      fold.add(finding(view, i, layer, resource), fmt::format("{}", id));
    }
    std::vector<Finding> findings = fold.take();
    for (Finding& f : findings) same_layers(layers, f);
    Result result = conclude(kOwnedResources, std::move(findings));
    result.notes = required_by_profile_alone(view);
    return result;
  }

 private:
  static Finding finding(const View& view, std::size_t i, const Layer* layer,
                         const std::string& resource) {
    const trace::Event& e = view.event(i);
    Finding f;
    f.contract = kOwnedResources;
    f.phase = view.phase(i);
    f.layer = layer_of(e);
    f.layer_kind = text(e, "layer_kind");
    f.role = text(e, "role");
    if (layer && f.layer_kind.empty()) f.layer_kind = layer->kind;
    if (layer && f.role.empty()) f.role = layer->role;
    f.rank = e.rank && *e.rank >= 0 ? *e.rank : -1;
    f.key = resource;
    f.expected = "owns " + resource;
    f.seen = owned_text(layer);
    f.message = fmt::format("phase {} requires {} of {}, which {}", f.phase.empty() ? "?" : f.phase,
                            resource, layer_text(f.layer, f.layer_kind, f.role), f.seen);
    f.events = {i};
    if (layer) f.events.push_back(layer->event);
    return f;
  }

  // Code that stops at the first layer says nothing of its like; they lack the resource as well.
  static void same_layers(const Layers& layers, Finding& f) {
    const Layer* layer = find(layers, std::max(0, f.rank), f.layer);
    if (!layer) return;
    std::vector<int> alike;
    for (const auto& [where, other] : layers) {
      if (where.first == std::max(0, f.rank) && other.kind == layer->kind &&
          other.role == layer->role && other.owns == layer->owns)
        alike.push_back(where.second);
    }
    f.detail["owns"] = layer->owns;
    f.detail["same_layers"] = alike;
    if (alike.size() > 1)
      f.message += fmt::format("; the same holds for the {} {}{}layers {}", alike.size(), f.role,
                               f.role.empty() ? "" : " ", layer_list(alike));
  }
};

}  // namespace

const Contract& owned_resources_contract() {
  static const OwnedResources contract;
  return contract;
}

}  // namespace warmgate::contract
