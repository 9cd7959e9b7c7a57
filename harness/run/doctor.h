// What can be observed on this machine, and what every missing thing costs.
#pragma once

#include <string>
#include <vector>

#include "harness/run/run.h"

namespace warmgate::run {

struct Capability {
  enum class State { kThere, kLimited, kMissing };
  std::string name;  // "NVRTC", "GPU", "pidfd", …
  State state = State::kThere;
  std::string why;                   // version, path, size; or what is missing
  std::vector<std::string> affects;  // contracts and figures that depend on it
};
std::string_view to_string(Capability::State state);

/// Looks; changes nothing but a probe file in the kernel cache, removed at once. Never throws.
std::vector<Capability> doctor(const Options& options);

}  // namespace warmgate::run
