// The part of CUPTI's binary interface that the probe uses, written down here so that it builds on
// machines without the CUDA toolkit and works with every release since 11: numbers and layouts have
// not changed since then (NVIDIA, CUPTI 11.0 to 13.0, cupti_callbacks.h and cupti_result.h).
// cupti_abi_test.cc holds it against the real headers where they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmgate::probe::cupti {

using Result = int;  // 0: success
inline constexpr Result kSuccess = 0;
inline constexpr Result kMultipleSubscribers = 39;

/// How many device buffers CUPTI takes with each context, whether anybody wants records or not; 3
/// where nobody says otherwise, together 12 MiB (cupti_activity.h, CUpti_ActivityAttribute).
inline constexpr int kDeviceBufferPreAllocate = 6;

enum Domain : int { kDriverApi = 1, kResource = 3 };
enum Site : int { kEnter = 0, kExit = 1 };
enum ResourceId : std::uint32_t {
  kContextCreated = 1,
  kContextDestroying = 2,
  kModuleLoaded = 6,
  kModuleUnloading = 7
};

/// What a callback of the driver domain gets.
struct CallbackData {
  int site;
  const char* function;  // "cuMemAlloc_v2"; lives for ever
  const void* params;    // the arguments in order, as a C struct
  void* result;          // int*, at kExit
  const char* symbol;    // launches: the kernel's name
  void* context;
  std::uint32_t context_uid;
  std::uint64_t* correlation_data;  // ours from kEnter to kExit of one call
  std::uint32_t correlation_id;
};

/// What a callback of the resource domain gets; `descriptor` of a module is a ModuleData*.
struct ResourceData {
  void* context;
  void* handle;
  void* descriptor;
};

struct ModuleData {
  std::uint32_t id;
  std::size_t bytes;
  const char* cubin;
};

using Callback = void (*)(void* user, int domain, std::uint32_t id, const void* data);

/// The functions, found at run time. Tests fill in their own.
struct Api {
  Result (*subscribe)(void** subscriber, Callback callback, void* user) = nullptr;
  Result (*unsubscribe)(void* subscriber) = nullptr;
  Result (*enable_callback)(std::uint32_t enable, void* subscriber, int domain,
                            std::uint32_t id) = nullptr;
  Result (*callback_name)(int domain, std::uint32_t id, const char** name) = nullptr;
  Result (*result_string)(Result result, const char** text) = nullptr;
  /// May be missing. cuptiActivitySetAttribute and cuptiFinalize.
  Result (*set_attribute)(int attribute, std::size_t* bytes, void* value) = nullptr;
  Result (*finalize)() = nullptr;
  bool complete() const {
    return subscribe && unsubscribe && enable_callback && callback_name && result_string;
  }
};

}  // namespace warmgate::probe::cupti
