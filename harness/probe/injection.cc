// libwarmgate_probe.so: the driver loads it into a process that initialises CUDA and is started
// with CUDA_INJECTION64_PATH naming it, and calls InitializeInjection(). Whatever is in the way
// becomes one `probe` event, and the host goes on as if nobody had asked.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "harness/probe/attach.h"
#include "harness/probe/library.h"

namespace {

using warmgate::probe::Observer;
using warmgate::probe::ObserverOptions;
using warmgate::probe::Report;

struct Probe {
  Report report;
  ObserverOptions options;
  warmgate::probe::CallTable call_table;
  Observer* observer = nullptr;
  void* subscriber = nullptr;
};

// Never destroyed: the driver may call back while other destructors run.
Probe* probe = nullptr;

void at_exit() {
  if (probe == nullptr || probe->report.off()) return;
  if (probe->observer != nullptr) {
    probe->observer->totals();
    probe->report.close(probe->observer->own_ns(), probe->observer->calls());
  } else {
    probe->report.close(0, 0);
  }
}

// A child that comes by fork() has the parent's channel and no driver of its own.
void in_child() {
  if (probe != nullptr) probe->report.forget();
  probe = nullptr;
}

// The driver is loaded: it is what called us.
std::vector<warmgate::probe::ParamInfo> parameter_functions() {
  std::vector<warmgate::probe::ParamInfo> out;
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return out;
  for (const char* name : {"cuFuncGetParamInfo", "cuKernelGetParamInfo"}) {
    if (void* found = ::dlsym(driver, name))
      out.push_back(reinterpret_cast<warmgate::probe::ParamInfo>(found));
  }
  return out;
}

bool is_set(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr && *value != '\0' && !(*value == '0' && value[1] == '\0');
}

// The byte that the harness sets when the engine is ready; null where there is none.
const volatile unsigned char* ready_byte() {
  const char* folder = ::secure_getenv("WARMGATE_EVENTS_DIR");
  if (folder == nullptr) return nullptr;
  const std::string path = std::string(folder) + "/" + warmgate::trace::kReadyFile;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return nullptr;
  struct stat file {};
  void* at = MAP_FAILED;
  if (::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size >= 1)
    at = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<const volatile unsigned char*>(at);
}

void start() {
  std::unique_ptr<Probe> owned(new (std::nothrow) Probe);
  if (owned == nullptr || !owned->report.open_from_environment()) return;
  Probe* made = probe = owned.release();
  made->options.launches = is_set("WARMGATE_PROBE_LAUNCHES");
  if (const char* bytes = ::secure_getenv("WARMGATE_PROBE_ALLOC_BYTES"))
    made->options.alloc_bytes = std::strtoll(bytes, nullptr, 10);
  if (const char* text = ::secure_getenv("WARMGATE_PROBE_DETACH_S")) {
    char* end = nullptr;
    const double after = std::strtod(text, &end);
    if (end != text && after >= 0 && after < 1e6)
      made->options.detach_after_ns = static_cast<std::int64_t>(after * 1e9);
  }
  ::pthread_atfork(nullptr, nullptr, in_child);
  std::atexit(at_exit);
  const warmgate::probe::FoundCupti cupti = warmgate::probe::find_cupti();
  std::string why = cupti.why;
  if (cupti.api.complete()) {
    made->options.parameters = parameter_functions();
    made->options.listen_to_launches = [made, api = cupti.api](bool on) {
      warmgate::probe::listen_to_launches(api, made->subscriber, on);
    };
    made->options.detach = [made, api = cupti.api] {
      warmgate::probe::detach(api, made->subscriber);
    };
    made->options.ready = ready_byte();
    if (made->call_table.open_from_environment()) made->options.call_table = &made->call_table;
    made->observer = new Observer(made->report, made->options);
    why = attach(cupti.api, *made->observer, made->options, made->subscriber);
  }
  auto line = Report::line("probe");
  line.str("status", why.empty() ? "attached" : "not attached");
  if (!why.empty()) line.str("reason", why);
  if (!cupti.path.empty()) line.str("cupti", cupti.path);
  made->report.send("probe", line);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (probe != nullptr) return 1;  // the driver asks again in every context
  try {
    start();
  } catch (...) {  // no memory: the host has worse troubles than we
  }
  return 1;
}
