// What of one engine can be observed on this machine: the table of contracts and channels, held
// against what its preset says and what this machine and this build have.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "harness/contract/channels.h"
#include "harness/run/doctor.h"
#include "harness/target/server/preset.h"

namespace warmgate::run {

struct ObservableChannel {
  contract::ChannelInfo info;
  bool there = true;
  std::string why;  // where it is not: what is missing
};

struct ObservableContract {
  std::string contract, promise;
  std::array<contract::Extent, contract::kChannels> extents{};
  std::string limits;             // what partial and inferred leave out
  std::vector<std::string> lost;  // channels that would show it, and why they do not here
};

struct Observable {
  std::string preset, engine;
  std::vector<ObservableChannel> channels;
  std::vector<ObservableContract> contracts;
};

/// `machine` is what doctor() found.
Observable observable(const target::ServerPreset& preset, const std::vector<Capability>& machine);

}  // namespace warmgate::run
