// Whether a run's contents fit this machine: asked before anything is touched, since the kernel's
// answer to too much is a kill that looks like a crash of the engine.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "harness/scenario/resolved.h"

namespace warmgate::engine {

/// Bytes that one rank will touch at most where ops execute, by what they are for; the reserved
/// address ranges are far larger. What is allocated and never read costs nothing.
struct MemoryNeed {
  std::int64_t weights = 0;      // of the rank, without routed experts
  std::int64_t rope = 0;         // rotary tables up to max_model_len
  std::int64_t kv_cache = 0;     // blocks that the workload's requests hold at once
  std::int64_t buffers = 0;      // block tables, slots, metadata
  std::int64_t workspace = 0;    // at full context
  std::int64_t activations = 0;  // of a step of max_num_batched_tokens
  std::int64_t total() const {
    return weights + rope + kv_cache + buffers + workspace + activations;
  }
};
/// Throws what make_dims() throws.
MemoryNeed memory_need(const scenario::Resolved& config);

/// MemAvailable, or what the control group leaves if that is less; INT64_MAX if neither is told.
std::int64_t available_memory();

struct TooLarge : std::runtime_error {
  TooLarge(const std::string& message, std::int64_t needed_in, std::int64_t available_in)
      : std::runtime_error(message), needed(needed_in), available(available_in) {}
  std::int64_t needed, available;  // bytes, of all ranks together
};
/// Throws TooLarge if `world` ranks like this one need more than `available`. Nothing where nothing
/// is executed, nor for a configuration or device that the engine refuses by itself.
void check_fits(const scenario::Resolved& config, int world, std::int64_t available);

}  // namespace warmgate::engine
