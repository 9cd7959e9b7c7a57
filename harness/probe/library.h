// Finds CUPTI: the copy that the process already has comes first, because two copies do not share
// the one subscription that a process may have.
#pragma once

#include <string>

#include "harness/probe/cupti_abi.h"

namespace warmgate::probe {

struct FoundCupti {
  cupti::Api api;    // complete() or not
  std::string path;  // which one
  std::string why;   // what was tried, where none is complete
};

/// In this order: one that is loaded (PyTorch brings its own), $WARMGATE_CUPTI, the loader's own
/// path, $CUDA_HOME and $CUDA_PATH, /usr/local/cuda. Opened and never closed.
FoundCupti find_cupti();

}  // namespace warmgate::probe
