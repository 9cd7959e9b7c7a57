// What a scenario needs of the machine, held against what there is.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "kernels/jit/jit.h"

namespace warmgate::run {

struct Gpu {
  std::string name;
  double gib = 0;            // of memory, all of it
  int major = 0, minor = 0;  // compute capability
};

/// The GPUs that NVML sees (libnvidia-ml by dlopen); empty without a driver. Asked once.
const std::vector<Gpu>& gpus_here();

/// Why the scenario cannot run here, with the numbers; "" if it can. Memory and architecture must
/// be met by as many GPUs as are needed (at least one). Files are looked for at each call.
/// `jit`: who is to compile; the host half is no NVRTC.
std::string unmet_need(const scenario::Needs& needs, const std::vector<Gpu>& gpus,
                       jit::Backend jit = jit::Backend::kAuto);

}  // namespace warmgate::run
