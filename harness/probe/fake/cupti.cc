// A libcupti for tests: takes one subscriber, and calls back for what a program says a driver did.
#include <cstdint>
#include <cstring>

#include "harness/probe/cupti_abi.h"

namespace cupti = warmgate::probe::cupti;

namespace {

constexpr const char* kNames[] = {"cuInit", "cuMemAlloc_v2", "cuMemFree_v2", "cuStreamSynchronize"};
cupti::Callback callback = nullptr;
void* user = nullptr;
bool enabled[8] = {};

}  // namespace

extern "C" {

cupti::Result cuptiSubscribe(void** subscriber, cupti::Callback asked, void* with) {
  if (callback != nullptr) return cupti::kMultipleSubscribers;
  callback = asked;
  user = with;
  *subscriber = &callback;
  return cupti::kSuccess;
}
cupti::Result cuptiUnsubscribe(void*) {
  callback = nullptr;
  return cupti::kSuccess;
}
cupti::Result cuptiEnableCallback(std::uint32_t on, void*, int domain, std::uint32_t id) {
  if (domain == cupti::kDriverApi && id < 8) enabled[id] = on != 0;
  return cupti::kSuccess;
}
cupti::Result cuptiGetCallbackName(int, std::uint32_t id, const char** name) {
  if (id > sizeof kNames / sizeof *kNames) return 1;
  *name = kNames[id - 1];
  return cupti::kSuccess;
}
cupti::Result cuptiGetResultString(cupti::Result, const char** text) {
  *text = "as the fake says";
  return cupti::kSuccess;
}

/// What a driver would tell of one call.
void fake_call(const char* name, const void* params) {
  for (std::uint32_t id = 1; id <= sizeof kNames / sizeof *kNames; ++id) {
    if (std::strcmp(kNames[id - 1], name) != 0 || !enabled[id] || callback == nullptr) continue;
    std::uint64_t correlation = 0;
    int result = 0;
    cupti::CallbackData data{};
    data.function = kNames[id - 1];
    data.params = params;
    data.correlation_data = &correlation;
    data.result = &result;
    data.site = cupti::kEnter;
    callback(user, cupti::kDriverApi, id, &data);
    data.site = cupti::kExit;
    callback(user, cupti::kDriverApi, id, &data);
  }
}
}
