#include "harness/run/needs.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace warmgate::run {

namespace {

// The few entry points of NVML (nvml.h of CUDA 11 and later) that are asked.
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlDevice = void*;

template <typename F>
F* entry(void* library, const char* name) {
  return reinterpret_cast<F*>(::dlsym(library, name));
}

std::vector<Gpu> ask_nvml() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  const auto init = entry<int()>(library, "nvmlInit_v2");
  const auto count = entry<int(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  const auto handle = entry<int(unsigned, NvmlDevice*)>(library, "nvmlDeviceGetHandleByIndex_v2");
  const auto name = entry<int(NvmlDevice, char*, unsigned)>(library, "nvmlDeviceGetName");
  const auto memory = entry<int(NvmlDevice, NvmlMemory*)>(library, "nvmlDeviceGetMemoryInfo");
  const auto capability =
      entry<int(NvmlDevice, int*, int*)>(library, "nvmlDeviceGetCudaComputeCapability");
  if (!init || !count || !handle || !name || !memory || !capability || init() != 0) return {};
  unsigned number = 0;
  std::vector<Gpu> out;
  if (count(&number) != 0) return out;
  for (unsigned i = 0; i < number; ++i) {
    NvmlDevice device = nullptr;
    if (handle(i, &device) != 0) continue;
    Gpu gpu;
    char text[96] = "";
    NvmlMemory bytes{};
    if (name(device, text, sizeof text) == 0) gpu.name = text;
    if (memory(device, &bytes) == 0) {
      gpu.gib = static_cast<double>(bytes.total) / (1024.0 * 1024 * 1024);
    }
    capability(device, &gpu.major, &gpu.minor);
    out.push_back(std::move(gpu));
  }
  return out;  // NVML stays open: closing it costs more than it frees
}

bool has_arch(const Gpu& gpu, const std::vector<std::string>& archs) {
  if (archs.empty()) return true;
  // sm_90a asks for compute capability 9.0 too; the letter is a feature set of the same chip.
  return std::any_of(archs.begin(), archs.end(), [&](const std::string& arch) {
    return arch.rfind("sm_", 0) == 0 &&
           std::strtol(arch.c_str() + 3, nullptr, 10) == gpu.major * 10 + gpu.minor;
  });
}

}  // namespace

const std::vector<Gpu>& gpus_here() {
  static const std::vector<Gpu> gpus = ask_nvml();
  return gpus;
}

std::string unmet_need(const scenario::Needs& needs, const std::vector<Gpu>& gpus,
                       jit::Backend jit) {
  if (needs.nvrtc && jit == jit::Backend::kHost) return "needs NVRTC, and --jit host keeps it out";
  if (needs.nvrtc && !jit::nvrtc().available) return "needs NVRTC: " + jit::nvrtc().why_not;
  for (const std::string& file : needs.files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error))
      return fmt::format("needs {}, which is not there", file);
  }
  if (!needs.gpus && !needs.gpu_gib && needs.arch.empty()) return "";
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(0, needs.gpus.value_or(1)));
  std::size_t fitting = 0;
  double largest = 0;
  for (const Gpu& gpu : gpus) {
    largest = std::max(largest, gpu.gib);
    fitting += (!needs.gpu_gib || gpu.gib >= *needs.gpu_gib) && has_arch(gpu, needs.arch) ? 1 : 0;
  }
  if (fitting >= wanted) return "";
  std::string text = fmt::format("needs {} GPU(s)", wanted);
  if (needs.gpu_gib) text += fmt::format(" of {:g} GiB", *needs.gpu_gib);
  if (!needs.arch.empty()) text += fmt::format(" of {}", fmt::join(needs.arch, " or "));
  text += fmt::format("; this machine has {}", gpus.size());
  if (!gpus.empty()) {
    text += fmt::format(", {} of which fit (the largest has {:.0f} GiB)", fitting, largest);
  }
  return text;
}

}  // namespace warmgate::run
