#include "harness/probe/calls.h"

#include <array>
#include <cstring>

namespace warmgate::probe {
namespace {

struct Named {
  std::string_view name;
  Call call;
};

constexpr std::array kCalls = {
    Named{"cuModuleLoadData", Call::kLoadImage},
    Named{"cuModuleLoadDataEx", Call::kLoadImage},
    Named{"cuModuleLoadFatBinary", Call::kLoadImage},
    Named{"cuLibraryLoadData", Call::kLoadImage},
    Named{"cuModuleLoad", Call::kLoadFile},
    Named{"cuLibraryLoadFromFile", Call::kLoadFile},
    Named{"cuMemAlloc_v2", Call::kAlloc},
    Named{"cuMemAllocManaged", Call::kAlloc},
    Named{"cuMemAllocAsync", Call::kAllocAsync},
    Named{"cuMemAllocFromPoolAsync", Call::kAllocAsync},
    Named{"cuMemCreate", Call::kCreate},
    Named{"cuMemFree_v2", Call::kFree},
    Named{"cuMemFreeAsync", Call::kFreeAsync},
    Named{"cuMemRelease", Call::kRelease},
    Named{"cuStreamBeginCapture", Call::kBeginCapture},
    Named{"cuStreamBeginCapture_v2", Call::kBeginCapture},
    Named{"cuStreamEndCapture", Call::kEndCapture},
    Named{"cuGraphInstantiate", Call::kInstantiate},
    Named{"cuGraphInstantiate_v2", Call::kInstantiate},
    Named{"cuGraphInstantiateWithFlags", Call::kInstantiate},
    Named{"cuGraphInstantiateWithParams", Call::kInstantiate},
    Named{"cuGraphExecDestroy", Call::kExecDestroy},
    Named{"cuGraphLaunch", Call::kReplay},
    Named{"cuLaunchKernel", Call::kLaunch},
    Named{"cuLaunchCooperativeKernel", Call::kLaunch},
    Named{"cuLaunchKernelEx", Call::kLaunchEx},
    Named{"cuCtxSynchronize", Call::kSynchronise},
    Named{"cuCtxSynchronize_v2", Call::kSynchronise},
    Named{"cuStreamSynchronize", Call::kSynchronise},
    Named{"cuEventSynchronize", Call::kSynchronise},
    Named{"cuMemcpyDtoH_v2", Call::kSynchronise},
    Named{"cuMemcpy", Call::kSynchronise},
};

}  // namespace

Call call_named(std::string_view name) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
      name.remove_suffix(suffix.size());
    }
  }
  for (const Named& each : kCalls) {
    if (each.name == name) return each.call;
  }
  return Call::kNone;
}

std::uint64_t word(const void* params, int i) {
  std::uint64_t out = 0;
  if (params != nullptr) {
    std::memcpy(&out, static_cast<const char*>(params) + static_cast<std::ptrdiff_t>(i) * 8, 8);
  }
  return out;
}

}  // namespace warmgate::probe
