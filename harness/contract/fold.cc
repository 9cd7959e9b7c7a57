#include "harness/contract/fold.h"

#include <algorithm>

namespace warmgate::contract {

void add_proof(Finding& finding, std::size_t event) {
  auto& events = finding.events;
  if (events.size() < kMaxProof && std::find(events.begin(), events.end(), event) == events.end())
    events.push_back(event);
}

void Fold::add(Finding finding, const std::string& unit) {
  std::string id;
  for (const std::string* part : {&finding.contract, &finding.phase, &finding.layer_kind,
                                  &finding.role, &finding.key, &finding.expected, &finding.seen}) {
    id += *part;
    id += '\x1f';
  }
  const auto [it, fresh] = index_.emplace(std::move(id), entries_.size());
  const int layer = finding.layer, rank = finding.rank;
  if (fresh) {
    entries_.push_back({std::move(finding), {}, {}, {}});
  } else {
    for (std::size_t event : finding.events) add_proof(entries_[it->second].finding, event);
  }
  Entry& entry = entries_[it->second];
  entry.units.insert(unit);
  if (layer >= 0) entry.layers.insert(layer);
  if (rank >= 0) entry.ranks.insert(rank);
}

std::vector<Finding> Fold::take() {
  std::vector<Finding> out;
  for (Entry& entry : entries_) {
    Finding& f = entry.finding;
    f.count = std::max<std::size_t>(1, entry.units.size());
    if (entry.ranks.size() > 1) f.rank = -1;
    if (!f.detail.is_object()) f.detail = nlohmann::json::object();
    if (entry.layers.size() > 1) f.detail["layers"] = entry.layers;
    if (entry.ranks.size() > 1) f.detail["ranks"] = entry.ranks;
    out.push_back(std::move(f));
  }
  entries_.clear();
  index_.clear();
  return out;
}

}  // namespace warmgate::contract
