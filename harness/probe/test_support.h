// A driver that is not there: names its calls as CUPTI does and calls back as CUPTI would.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/probe/attach.h"
#include "harness/trace/event.h"

namespace warmgate::probe::testing {

inline const std::vector<std::string>& fake_names() {
  static const std::vector<std::string> names = {"cuInit",
                                                 "cuModuleLoadData",
                                                 "cuLibraryLoadFromFile",
                                                 "cuMemAlloc_v2",
                                                 "cuMemFree_v2",
                                                 "cuMemCreate",
                                                 "cuStreamBeginCapture_v2_ptsz",
                                                 "cuStreamEndCapture",
                                                 "cuGraphInstantiateWithFlags",
                                                 "cuGraphLaunch",
                                                 "cuGraphExecDestroy",
                                                 "cuLaunchKernel",
                                                 "cuLaunchKernelEx",
                                                 "cuStreamSynchronize",
                                                 "cuMemAllocAsync",
                                                 "cuMemFreeAsync"};
  return names;
}

/// One at a time, as the real one is.
struct FakeCupti {
  cupti::Callback callback = nullptr;
  void* user = nullptr;
  std::set<std::uint32_t> enabled, resources;
  cupti::Result subscribe_result = 0, enable_result = 0;
  int unsubscribed = 0, finalized = 0;
  std::vector<int> attributes;  // set to 0 before anybody subscribed
  bool names_nothing = false;

  static FakeCupti& now() {
    static FakeCupti instance;
    return instance;
  }
  static cupti::Api api() {
    cupti::Api out;
    out.subscribe = [](void** subscriber, cupti::Callback callback, void* user) {
      if (now().subscribe_result != 0) return now().subscribe_result;
      now().callback = callback;
      now().user = user;
      *subscriber = &now();
      return 0;
    };
    out.unsubscribe = [](void*) {
      ++now().unsubscribed;
      now().callback = nullptr;
      return 0;
    };
    out.enable_callback = [](std::uint32_t on, void*, int domain, std::uint32_t id) {
      if (now().enable_result != 0) return now().enable_result;
      auto& set = domain == cupti::kDriverApi ? now().enabled : now().resources;
      on != 0 ? (void)set.insert(id) : (void)set.erase(id);
      return 0;
    };
    out.set_attribute = [](int attribute, std::size_t* bytes, void* value) {
      if (now().callback == nullptr && *bytes == 8 && *static_cast<std::size_t*>(value) == 0)
        now().attributes.push_back(attribute);
      return 0;
    };
    out.finalize = [] {
      ++now().finalized;
      return 0;
    };
    out.callback_name = [](int, std::uint32_t id, const char** name) {
      const auto& names = fake_names();
      if (now().names_nothing || id > names.size()) return 1;
      *name = names[id - 1].c_str();
      return 0;
    };
    out.result_string = [](cupti::Result result, const char** text) {
      *text = result == cupti::kMultipleSubscribers ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"
                                                    : "CUPTI_ERROR_UNKNOWN";
      return 0;
    };
    return out;
  }

  static std::uint32_t id_of(const std::string& name) {
    for (std::uint32_t i = 0; i < fake_names().size(); ++i) {
      if (fake_names()[i] == name) return i + 1;
    }
    return 0;
  }

  /// One call: in, `between` (what happens inside the driver), out. Nothing if nobody listens.
  template <typename F>
  void call(const std::string& name, const void* params, F&& between, int result = 0,
            const char* symbol = nullptr) {
    const std::uint32_t id = id_of(name);
    const bool listened = callback != nullptr && enabled.count(id) != 0;
    std::uint64_t correlation = 0;
    cupti::CallbackData data{};
    data.site = cupti::kEnter;
    data.function = name.c_str();
    data.params = params;
    data.symbol = symbol;
    data.correlation_data = &correlation;
    if (listened) callback(user, cupti::kDriverApi, id, &data);
    between();
    data.site = cupti::kExit;
    data.result = &result;
    if (listened) callback(user, cupti::kDriverApi, id, &data);
  }
  void call(const std::string& name, const void* params, int result = 0,
            const char* symbol = nullptr) {
    call(
        name, params, [] {}, result, symbol);
  }
  void module(std::uint32_t number, const std::string& cubin) {
    cupti::ModuleData module{number, cubin.size(), cubin.data()};
    cupti::ResourceData data{nullptr, nullptr, &module};
    if (callback != nullptr && resources.count(cupti::kModuleLoaded) != 0)
      callback(user, cupti::kResource, cupti::kModuleLoaded, &data);
  }
};

/// A probe whose words can be read.
class Heard {
 public:
  explicit Heard(ObserverOptions options = {}) : observer(report, options), options_(options) {
    FakeCupti::now() = FakeCupti();
    if (::pipe(pipe_) != 0) throw std::runtime_error("pipe");
    report.open_descriptor(pipe_[1]);
  }
  ~Heard() {
    ::close(pipe_[0]);
    if (pipe_[1] >= 0) ::close(pipe_[1]);
  }
  std::string attach() { return probe::attach(FakeCupti::api(), observer, options_, subscriber); }
  /// Everything said until now; the end of it.
  trace::Trace events() {
    hang_up();
    return events_until_end();
  }
  void hang_up() {
    ::close(pipe_[1]);
    pipe_[1] = -1;
  }
  /// Waits for hang_up().
  trace::Trace events_until_end() {
    trace::Trace out;
    trace::LineReader reader("probe", out);
    char buffer[65536];
    for (ssize_t n; (n = ::read(pipe_[0], buffer, sizeof buffer)) > 0;)
      reader.feed({buffer, static_cast<std::size_t>(n)});
    reader.finish();
    return out;
  }

  Report report;
  Observer observer;
  void* subscriber = nullptr;

 private:
  ObserverOptions options_;
  int pipe_[2] = {-1, -1};
};

}  // namespace warmgate::probe::testing
