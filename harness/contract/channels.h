// Which channel shows a contract of an engine that nobody changed, and how far. The one table of
// this knowledge: `doctor --target`, and the hint beside what was not observed, are made from it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/contract/view.h"

namespace warmgate::contract {

/// How far a channel shows whether a contract was kept.
enum class Extent {
  kNone,      // not at all
  kInferred,  // from something else that goes with it
  kPartial,   // some of what would break it is seen, some is not
  kFull       // whatever would break it is seen
};
std::string_view to_string(Extent extent);

struct ChannelInfo {
  std::string_view name;
  std::string_view about;  // what it is, in a few words
  /// What --probe calls it; "" = it is always there, or (own) up to the engine.
  std::string_view probe;
};

/// In the order of the columns: log http process stores spans python nccl cuda core own.
const std::vector<ChannelInfo>& channels();
inline constexpr std::size_t kChannels = 10;
/// Index of a channel by its name; kChannels if there is none.
std::size_t channel_index(std::string_view name);

struct ContractChannels {
  std::string_view contract;
  std::array<Extent, kChannels> extents;  // in the order of channels()
  std::string_view limits;                // what partial and inferred leave out; "" where nothing
};

/// A row for each built-in contract, in the order of the registry. `own` is an engine that speaks
/// the event protocol and sends all that the contract needs.
const std::vector<ContractChannels>& contract_channels();
/// Null for a contract that is not built in.
const ContractChannels* channels_of(std::string_view contract);

/// "--probe nccl shows it", "the engine's own events show it": what would have shown a contract
/// that lacked events which no source of this trace sends. "" where everything that could was
/// there.
std::string shown_by(std::string_view contract, const View& view);

}  // namespace warmgate::contract
