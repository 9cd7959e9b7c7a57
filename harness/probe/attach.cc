#include "harness/probe/attach.h"

#include <utility>

namespace warmgate::probe {
namespace {

void called_back(void* user, int domain, std::uint32_t id, const void* data) {
  if (user == nullptr || data == nullptr) return;
  auto& observer = *static_cast<Observer*>(user);
  // An exception must not pass through the driver; there is no memory left where one is thrown.
  try {
    if (domain == cupti::kDriverApi) {
      observer.on_driver(id, *static_cast<const cupti::CallbackData*>(data));
    } else if (domain == cupti::kResource) {
      observer.on_resource(id, *static_cast<const cupti::ResourceData*>(data));
    }
  } catch (...) {
  }
}

std::string words(const cupti::Api& api, const char* what, cupti::Result result) {
  const char* text = nullptr;
  if (api.result_string(result, &text) != cupti::kSuccess || text == nullptr) text = "";
  std::string out = std::string(what) + ": " + (*text == '\0' ? "error" : text) + " (" +
                    std::to_string(result) + ")";
  if (result == cupti::kMultipleSubscribers)
    out += "; another tool of this process uses CUPTI, which takes one";
  return out;
}

constexpr std::uint32_t kMostIds = 4096;

bool is_launch(Call call) { return call == Call::kLaunch || call == Call::kLaunchEx; }

bool wanted(Call call, const ObserverOptions& options) {
  return call != Call::kNone && (options.launches || !is_launch(call));
}

}  // namespace

std::string attach(const cupti::Api& api, Observer& observer, const ObserverOptions& options,
                   void*& subscriber) {
  // Before a context is there, because buffers for records that nobody asks for come with it, and
  // the capacity under test would be smaller. Where CUPTI does not know this, it costs 12 MiB.
  if (api.set_attribute != nullptr) {
    std::size_t bytes = sizeof(std::size_t), none = 0;
    api.set_attribute(cupti::kDeviceBufferPreAllocate, &bytes, &none);
  }
  if (const auto result = api.subscribe(&subscriber, called_back, &observer)) {
    subscriber = nullptr;
    return words(api, "cuptiSubscribe", result);
  }
  cupti::Result failed = cupti::kSuccess;
  int listened = 0;
  for (std::uint32_t id = 1; id < kMostIds; ++id) {
    const char* name = nullptr;
    if (api.callback_name(cupti::kDriverApi, id, &name) != cupti::kSuccess) break;
    const Call call = name == nullptr ? Call::kNone : call_named(name);
    observer.name(id, call);
    if (!wanted(call, options)) continue;
    const auto result = api.enable_callback(1, subscriber, cupti::kDriverApi, id);
    if (result != cupti::kSuccess) failed = result;
    listened += result == cupti::kSuccess;
  }
  for (const auto id : {cupti::kContextCreated, cupti::kModuleLoaded}) {
    const auto result = api.enable_callback(1, subscriber, cupti::kResource, id);
    if (result != cupti::kSuccess) failed = result;
  }
  if (failed == cupti::kSuccess && listened > 0) return "";
  api.unsubscribe(subscriber);
  subscriber = nullptr;
  return failed == cupti::kSuccess ? "CUPTI names none of the driver calls that are listened to"
                                   : words(api, "cuptiEnableCallback", failed);
}

void detach(const cupti::Api& api, void*& subscriber) {
  if (subscriber == nullptr) return;
  api.unsubscribe(std::exchange(subscriber, nullptr));
  // What CUPTI costs is that it is there: 0.4 us for each kernel of a graph at every replay, though
  // nothing is listened to. Finalising is legal in a callback on a call's way out.
  if (api.finalize != nullptr) api.finalize();
}

void listen_to_launches(const cupti::Api& api, void* subscriber, bool on) {
  if (subscriber == nullptr) return;
  for (std::uint32_t id = 1; id < kMostIds; ++id) {
    const char* name = nullptr;
    if (api.callback_name(cupti::kDriverApi, id, &name) != cupti::kSuccess) return;
    if (name != nullptr && is_launch(call_named(name)))
      api.enable_callback(on ? 1 : 0, subscriber, cupti::kDriverApi, id);
  }
}

}  // namespace warmgate::probe
