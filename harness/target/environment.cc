#include "harness/target/environment.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "harness/trace/sha256.h"

extern char** environ;

namespace warmgate::target {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line.substr(0, 400);
}

// The value after "name :" in files like /proc/meminfo and /proc/cpuinfo.
std::string field(const fs::path& path, std::string_view name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin, 400);
  }
  return "";
}

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }

json kib_as_bytes(const std::string& text) {
  if (text.empty()) return nullptr;
  return std::strtoll(text.c_str(), nullptr, 10) * 1024;
}

json free_bytes(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return nullptr;
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

std::string variable(const char* const* env, std::string_view name) {
  for (; env != nullptr && *env != nullptr; ++env) {
    const std::string_view entry = *env;
    if (entry.size() > name.size() && entry[name.size()] == '=' &&
        entry.substr(0, name.size()) == name)
      return std::string(entry.substr(name.size() + 1));
  }
  return "";
}

json gpus(const std::string& root) {
  json out = json::array();
  std::error_code failed;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root + "/proc/driver/nvidia/gpus", failed)) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const fs::path info = folder / "information";
    out.push_back({{"bus", folder.filename().string()},
                   {"name", text_or_null(field(info, "Model"))},
                   {"uuid", text_or_null(field(info, "GPU UUID"))},
                   {"firmware", text_or_null(field(info, "GPU Firmware"))}});
  }
  return out;
}

json cuda(const std::string& root, const char* const* env) {
  std::vector<std::string> homes = {variable(env, "CUDA_PATH"), variable(env, "CUDA_HOME"),
                                    root + "/usr/local/cuda", root + "/opt/cuda"};
  std::error_code failed;
  json out = {{"toolkit", nullptr}, {"nvrtc", nullptr}};
  for (const std::string& home : homes) {
    if (home.empty() || !fs::is_directory(home, failed)) continue;
    out["toolkit"] = fs::canonical(home, failed).string();
    for (const char* folder :
         {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
      std::vector<std::string> found;
      for (const auto& entry : fs::directory_iterator(fs::path(home) / folder, failed)) {
        const std::string name = entry.path().filename();
        if (name.rfind("libnvrtc.so.", 0) == 0) found.push_back(entry.path());
      }
      if (found.empty()) continue;
      out["nvrtc"] = *std::max_element(found.begin(), found.end());
      return out;
    }
  }
  return out;
}

// A cold and a warm cache start differently, so which there were belongs to the record.
json caches(const char* const* env) {
  const std::string home = variable(env, "HOME");
  const std::string xdg = variable(env, "XDG_CACHE_HOME");
  const std::string base = !xdg.empty() ? xdg : home.empty() ? "" : home + "/.cache";
  const auto under = [](const std::string& folder, const char* name) {
    return folder.empty() ? std::string() : folder + "/" + name;
  };
  struct Cache {
    const char *name, *variable;
    std::string standard;
  };
  const Cache all[] = {
      {"warmgate kernels", "WARMGATE_KERNEL_CACHE", under(base, "warmgate/kernels")},
      {"CUDA driver", "CUDA_CACHE_PATH", under(home, ".nv/ComputeCache")},
      {"Triton", "TRITON_CACHE_DIR", under(home, ".triton/cache")},
      {"TorchInductor", "TORCHINDUCTOR_CACHE_DIR", ""},
      {"vLLM", "VLLM_CACHE_ROOT", under(base, "vllm")},
      {"FlashInfer", "FLASHINFER_WORKSPACE_BASE", under(base, "flashinfer")},
      {"DeepGEMM", "DG_JIT_CACHE_DIR", under(home, ".deep_gemm")}};
  json out = json::array();
  for (const Cache& cache : all) {
    std::string path = variable(env, cache.variable);
    if (path.empty()) path = cache.standard;
    if (path.empty()) continue;
    std::error_code failed;
    const char* state = !fs::is_directory(path, failed) ? "absent"
                        : fs::is_empty(path, failed)    ? "empty"
                                                        : "filled";
    out.push_back({{"name", cache.name}, {"path", path}, {"state", state}});
  }
  return out;
}

std::string masked_variable(std::string_view name, std::string_view value,
                            const std::vector<std::string>& secrets) {
  if (is_secret_name(name) && !value.empty()) return std::string(kMask);
  std::string out = mask(value, secrets);
  if (out.size() > 1000) out = out.substr(0, 1000) + " …";
  return out;
}

// The values that may stand in a report, everywhere in the record.
void mask_all(json& value, const std::vector<std::string>& secrets) {
  if (value.is_string()) {
    value = mask(value.get_ref<const std::string&>(), secrets);
  } else if (value.is_structured()) {
    for (auto& item : value) mask_all(item, secrets);
  }
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string& revision() {
  static std::string text = "unknown";
  return text;
}

}  // namespace

void set_revision(std::string_view text) { revision() = text; }

bool is_relevant_variable(std::string_view name) {
  for (const std::string_view prefix :
       {"CUDA",  "NVIDIA_",  "NCCL_",        "VLLM_",         "SGLANG_",       "SGL_",
        "TORCH", "PYTORCH",  "TRITON_",      "HF_",           "TRANSFORMERS_", "FLASHINFER_",
        "DG_",   "OMP_",     "MKL_",         "OPENBLAS_",     "WARMGATE_",     "MALLOC_",
        "LD_",   "PYTHON",   "XDG_CACHE",    "GLIBC_",        "TOKENIZERS_",   "NVRTC",
        "NVCC",  "MAX_JOBS", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  for (const std::string_view exact :
       {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "CC", "CXX", "TZ", "http_proxy", "https_proxy",
        "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (name == exact) return true;
  }
  return false;
}

json environment_record(const std::vector<std::string>& secrets) {
  return environment_record(secrets, "", ::environ);
}

json environment_record(const std::vector<std::string>& secrets, const std::string& root,
                        const char* const* env) {
  json out = {{"schema", kEnvironmentSchema}};
  utsname names{};
  ::uname(&names);
  out["host"] = names.nodename;
  out["kernel"] = std::string(names.sysname) + " " + names.release;
  out["machine"] = names.machine;
  out["cpu"] = text_or_null(field(root + "/proc/cpuinfo", "model name"));
  cpu_set_t set;
  CPU_ZERO(&set);
  out["cores"] = ::sched_getaffinity(0, sizeof set, &set) == 0 ? json(CPU_COUNT(&set)) : json();
  out["memory_bytes"] = kib_as_bytes(field(root + "/proc/meminfo", "MemTotal"));
  out["memory_available_bytes"] = kib_as_bytes(field(root + "/proc/meminfo", "MemAvailable"));
  std::string temp = variable(env, "TMPDIR");
  if (temp.empty()) temp = "/tmp";
  out["temp"] = {{"path", temp}, {"free_bytes", free_bytes(temp)}};
  out["shm_free_bytes"] = free_bytes("/dev/shm");
  out["driver"] = text_or_null(first_line(root + "/proc/driver/nvidia/version"));
  out["gpus"] = gpus(root);
  out["cuda"] = cuda(root, env);
  out["caches"] = caches(env);
  json variables = json::object();
  for (const char* const* at = env; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::size_t equal = entry.find('=');
    if (equal == std::string_view::npos || !is_relevant_variable(entry.substr(0, equal))) continue;
    variables[std::string(entry.substr(0, equal))] =
        masked_variable(entry.substr(0, equal), entry.substr(equal + 1), secrets);
  }
  out["variables"] = std::move(variables);
  out["warmgate"] = WARMGATE_VERSION;
  out["warmgate_revision"] = revision();
  json identity = json::object();
  for (const char* key :
       {"host", "kernel", "machine", "cpu", "cores", "memory_bytes", "driver", "gpus", "cuda"}) {
    identity[key] = out[key];
  }
  out["fingerprint"] =
      trace::sha256_hex(identity.dump(-1, ' ', false, json::error_handler_t::replace))
          .substr(0, 12);
  out["taken_at"] = utc_now();
  mask_all(out, secrets);
  return out;
}

}  // namespace warmgate::target
