#include "harness/run/observable.h"

#include <algorithm>

#include "harness/contract/contract.h"
#include "harness/explain/reader.h"
#include "harness/run/inject.h"

namespace warmgate::run {

using contract::Extent;

namespace {

const Capability* capability(const std::vector<Capability>& machine, const std::string& name) {
  const auto it = std::find_if(machine.begin(), machine.end(),
                               [&](const Capability& each) { return each.name == name; });
  return it == machine.end() ? nullptr : &*it;
}

// "" if the machine has it.
std::string lacks(const std::vector<Capability>& machine, const std::string& name) {
  const Capability* found = capability(machine, name);
  if (found == nullptr) return "this build does not know " + name;
  return found->state == Capability::State::kMissing ? found->why : "";
}

bool counts_drafts(const target::ServerPreset& preset) {
  return std::any_of(preset.metric_names.begin(), preset.metric_names.end(),
                     [](const target::MetricName& name) { return name.ours == "drafts"; });
}

// Why this channel says nothing of this engine here; "" where it does.
std::string missing(const contract::ChannelInfo& channel, const target::ServerPreset& preset,
                    const std::vector<Capability>& machine) {
  if (channel.name == "log") {
    if (!explain::available()) return explain::availability();
    if (preset.log == "any") return "no grammar is known for its log";
  }
  if (channel.name == "process") return lacks(machine, "subreaper");
  if (channel.name == "stores" && preset.stores.empty()) return "no store of it is known";
  if (channel.name == "spans" && preset.spans.phases.empty()) {
    return "it is not known to export spans of its start";
  }
  if (channel.name == "python" && preset.builds.package.empty()) {
    return "it is not known to be a Python package";
  }
  if (channel.probe.empty()) return "";
  const auto& all = probes();
  const auto probe = std::find_if(all.begin(), all.end(), [&](const InjectedProbe& each) {
    return each.name == channel.probe;
  });
  if (probe == all.end()) return "this build has no such probe";
  const std::string file = lacks(machine, "probe " + probe->name);
  if (!file.empty()) return file;
  if (channel.name == "cuda" || channel.name == "nccl" || channel.name == "core")
    return lacks(machine, "GPU");
  return "";
}

}  // namespace

Observable observable(const target::ServerPreset& preset, const std::vector<Capability>& machine) {
  Observable out;
  out.preset = preset.name;
  out.engine = preset.engine;
  for (const contract::ChannelInfo& info : contract::channels()) {
    ObservableChannel channel;
    channel.info = info;
    channel.why = missing(info, preset, machine);
    channel.there = channel.why.empty();
    out.channels.push_back(std::move(channel));
  }
  for (const contract::ContractChannels& row : contract::contract_channels()) {
    ObservableContract one;
    one.contract = row.contract;
    if (const contract::Contract* known = contract::find_contract(row.contract)) {
      one.promise = known->promise();
    }
    one.extents = row.extents;
    one.limits = row.limits;
    for (std::size_t i = 0; i < contract::kChannels; ++i) {
      if (one.extents[i] == Extent::kNone) continue;
      const ObservableChannel& channel = out.channels[i];
      std::string why = channel.why;
      if (why.empty() && row.contract == "speculation-live" && !counts_drafts(preset)) {
        why = "its metrics count no drafts";
      }
      if (why.empty()) continue;
      one.extents[i] = Extent::kNone;
      one.lost.push_back(std::string(channel.info.name) + ": " + why);
    }
    out.contracts.push_back(std::move(one));
  }
  return out;
}

}  // namespace warmgate::run
