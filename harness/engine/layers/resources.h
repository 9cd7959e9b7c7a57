// What a layer may own and what code may ask of it.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "harness/engine/context.h"

namespace warmgate::engine {

enum class Resource : std::uint8_t {
  kTopkIndicesBuffer,
  kSwaCache,
  kCompressedCache,
  kCompressor,
  kStateCache,
  kIndexer,
  kIndexerCache,
  kIndexerStateCache,
  kAttnSink,
  kAuxStreams,
  kEagerScratch,
  kCount
};
std::string_view to_string(Resource resource);

class Owned {
 public:
  void add(Resource r) { bits_ |= bit(r); }
  bool has(Resource r) const { return (bits_ & bit(r)) != 0; }
  std::vector<std::string> names() const;

 private:
  friend class Demands;
  static std::uint32_t bit(Resource r) { return 1u << static_cast<unsigned>(r); }
  std::uint32_t bits_ = 0;
};

/// What has been asked of one layer in the current phase, so that each demand is told once.
class Demands {
 public:
  /// True the first time in `phase`.
  bool first(const std::string& phase, Resource r) {
    if (phase != phase_) [[unlikely]] {
      phase_ = phase;
      told_ = 0;
    }
    const bool fresh = (told_ & Owned::bit(r)) == 0;
    told_ |= Owned::bit(r);
    return fresh;
  }

 private:
  std::string phase_;
  std::uint32_t told_ = 0;
};

struct LayerState;

/// The one way for code to ask a layer for something: sends `requires` and, where the layer does
/// not own it, throws ResourceMissing with the caller's place. So trace and assertion cannot
/// disagree.
void require(Context& context, LayerState& layer, Resource resource,
             const std::source_location& caller = std::source_location::current());

}  // namespace warmgate::engine
