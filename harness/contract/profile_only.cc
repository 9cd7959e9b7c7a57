#include "harness/contract/profile_only.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "harness/contract/fold.h"

namespace warmgate::contract {

std::vector<Finding> required_by_profile_alone(const View& view) {
  using Group = std::pair<std::string, std::string>;  // kind, role
  std::map<Group, std::map<std::string, std::size_t>> asked_in_profile;
  std::map<Group, std::set<std::string>> asked_later;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev != "requires" || !e.flag("owned", true)) continue;
    const Group group(text(e, "layer_kind"), text(e, "role"));
    const std::string resource(text(e, "resource"));
    if (group.first.empty() || resource.empty()) continue;
    if (view.phase(i) == "profile") {
      asked_in_profile[group].emplace(resource, i);
    } else if (view.phase(i) == "warmup" || view.phase(i) == "serve") {
      asked_later[group].insert(resource);
    }
  }
  std::vector<Finding> notes;
  for (const auto& [group, resources] : asked_in_profile) {
    const auto later = asked_later.find(group);
    if (later == asked_later.end()) continue;
    for (const auto& [resource, event] : resources) {
      if (later->second.count(resource) > 0) continue;
      Finding note;
      note.contract = "owned-resources";
      note.phase = "profile";
      note.layer_kind = group.first;
      note.role = group.second;
      note.key = resource;
      note.expected = "profile asks for what later phases ask for";
      note.seen = "profile alone asks for " + resource;
      note.message = fmt::format(
          "profile requires {} of the {} {} layers, which own it; no later phase does, so that "
          "owning it may mask a fault",
          resource, group.second, group.first);
      note.events = {event};
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

}  // namespace warmgate::contract
