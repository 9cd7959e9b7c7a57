#include "harness/probe/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace warmgate::probe {
namespace {

int look(dl_phdr_info* info, std::size_t, void* data) {
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (name.substr(0, 11) != "libcupti.so") return 0;
  *static_cast<std::string*>(data) = path;
  return 1;
}

std::vector<std::string> places() {
  std::vector<std::string> out;
  std::string loaded;
  if (dl_iterate_phdr(look, &loaded) != 0) out.push_back(loaded);
  if (const char* wish = ::secure_getenv("WARMGATE_CUPTI")) out.emplace_back(wish);
  const std::vector<std::string> names = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                          "libcupti.so"};
  for (const std::string& name : names) out.push_back(name);
  std::vector<std::string> homes;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = ::secure_getenv(variable)) homes.emplace_back(home);
  }
  homes.emplace_back("/usr/local/cuda");
  for (const std::string& home : homes) {
    for (const char* folder : {"/lib64/", "/lib/", "/extras/CUPTI/lib64/"}) {
      for (const std::string& name : names) out.push_back(home + folder + name);
    }
  }
  return out;
}

template <typename F>
void find(void* library, const char* name, F& out) {
  out = reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

FoundCupti find_cupti() {
  FoundCupti out;
  for (const std::string& place : places()) {
    void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    cupti::Api api;
    find(library, "cuptiSubscribe", api.subscribe);
    find(library, "cuptiUnsubscribe", api.unsubscribe);
    find(library, "cuptiEnableCallback", api.enable_callback);
    find(library, "cuptiGetCallbackName", api.callback_name);
    find(library, "cuptiGetResultString", api.result_string);
    find(library, "cuptiActivitySetAttribute", api.set_attribute);
    find(library, "cuptiFinalize", api.finalize);
    if (!api.complete()) {
      out.why += (out.why.empty() ? "" : "; ") + place + " lacks functions";
      continue;
    }
    out.api = api;
    out.path = place;
    return out;
  }
  if (out.why.empty())
    out.why =
        "no libcupti is loaded, on the loader's path or under CUDA_HOME; WARMGATE_CUPTI=FILE names "
        "one";
  return out;
}

}  // namespace warmgate::probe
