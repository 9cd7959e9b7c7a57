#include "kernels/jit/nvrtc.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <stdexcept>

#include "kernels/jit/jit.h"

namespace warmgate::jit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

std::vector<fs::path> search_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    const char* root = std::getenv(variable);
    if (root == nullptr || *root == '\0') continue;
    for (const char* below : {"lib64", "targets/x86_64-linux/lib", "lib"})
      folders.push_back(fs::path(root) / below);
  }
  for (const char* root : {"/usr/local/cuda", "/opt/cuda"}) {
    for (const char* below : {"lib64", "targets/x86_64-linux/lib"})
      folders.push_back(fs::path(root) / below);
  }
  const char* loader = std::getenv("LD_LIBRARY_PATH");
  for (std::string_view rest = loader == nullptr ? "" : loader; !rest.empty();) {
    const auto end = rest.find(':');
    if (end != 0) folders.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"})
    folders.emplace_back(folder);
  return folders;
}

/// The digits and dots after `prefix` in a file name: "libnvrtc.so.13" → "13".
std::string version_after(const std::string& name, std::string_view prefix) {
  if (name.rfind(prefix, 0) != 0) return {};
  const std::string rest = name.substr(prefix.size());
  return rest.find_first_not_of("0123456789.") == std::string::npos ? rest : std::string();
}

std::string major_minor(const std::string& version) {
  const auto first = version.find('.');
  if (first == std::string::npos) return version;
  return version.substr(0, version.find('.', first + 1));
}

/// major.minor without loading anything: the library of built-in headers beside it carries both.
std::string version_of(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  const std::string own = version_after(real.filename().string(), "libnvrtc.so.");
  if (own.find('.') != std::string::npos) return major_minor(own);
  for (const auto& entry : fs::directory_iterator(real.parent_path(), error)) {
    const std::string version =
        version_after(entry.path().filename().string(), "libnvrtc-builtins.so.");
    if (version.find('.') != std::string::npos && version.substr(0, version.find('.')) == own) {
      return major_minor(version);
    }
  }
  return own;
}

bool describe(const fs::path& path, NvrtcFile& out) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return false;
  out.path = path;
  out.version = version_of(path);
  out.identity = out.version + "/" + std::to_string(info.st_size) + "/" +
                 std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec);
  return true;
}

/// A layout that only the loader knows (ld.so.cache): ask it, and where the file came from.
fs::path ask_loader(const char* name) {
  void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return {};
  link_map* map = nullptr;
  fs::path path;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr)
    path = map->l_name;
  dlclose(handle);
  return path;
}

template <typename F>
void resolve(void* handle, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, symbol));
  if (function == nullptr) throw std::runtime_error(std::string("NVRTC lacks ") + symbol);
}

}  // namespace

bool NvrtcFile::at_least(int major, int minor) const {
  const int have_major = std::atoi(version.c_str());
  const auto dot = version.find('.');
  const int have_minor = dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
  return have_major > major || (have_major == major && have_minor >= minor);
}

NvrtcFile find_nvrtc() {
  NvrtcFile out;
  if (const char* named = std::getenv("WARMGATE_NVRTC"); named != nullptr && *named != '\0') {
    if (std::string_view(named) == "none") {
      out.why_not = "NVRTC is switched off (WARMGATE_NVRTC=none)";
    } else if (!describe(named, out)) {
      out.why_not = std::string("WARMGATE_NVRTC names no file: ") + named;
    }
    return out;
  }
  for (const fs::path& folder : search_folders()) {
    for (const char* name : kNames) {
      if (describe(folder / name, out)) return out;
    }
  }
  for (const char* name : kNames) {
    const fs::path path = ask_loader(name);
    if (!path.empty() && describe(path, out)) return out;
  }
  out.why_not =
      "NVRTC is not on this machine (no libnvrtc.so.13 or .12 in CUDA_PATH, CUDA_HOME, "
      "/usr/local/cuda, LD_LIBRARY_PATH or the loader's folders)";
  return out;
}

const NvrtcInfo& nvrtc() {
  static const NvrtcInfo info = [] {
    const NvrtcFile file = find_nvrtc();
    return NvrtcInfo{!file.path.empty(), file.version, file.path.string(), file.why_not};
  }();
  return info;
}

Nvrtc::Nvrtc(const fs::path& path) {
  // Never closed: the library keeps threads and caches of its own.
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(std::string("NVRTC: ") + dlerror());
  resolve(handle, "nvrtcCreateProgram", nvrtc_.create);
  resolve(handle, "nvrtcDestroyProgram", nvrtc_.destroy);
  resolve(handle, "nvrtcAddNameExpression", nvrtc_.add_name);
  resolve(handle, "nvrtcCompileProgram", nvrtc_.compile);
  resolve(handle, "nvrtcGetLoweredName", nvrtc_.lowered);
  resolve(handle, "nvrtcGetProgramLogSize", nvrtc_.log_size);
  resolve(handle, "nvrtcGetProgramLog", nvrtc_.log);
  resolve(handle, "nvrtcGetCUBINSize", nvrtc_.cubin_size);
  resolve(handle, "nvrtcGetCUBIN", nvrtc_.cubin);
  resolve(handle, "nvrtcGetPTXSize", nvrtc_.ptx_size);
  resolve(handle, "nvrtcGetPTX", nvrtc_.ptx);
  nvrtc_.arch_count = reinterpret_cast<int (*)(int*)>(dlsym(handle, "nvrtcGetNumSupportedArchs"));
  nvrtc_.archs = reinterpret_cast<int (*)(int*)>(dlsym(handle, "nvrtcGetSupportedArchs"));
}

std::vector<int> Nvrtc::architectures() const {
  int count = 0;
  if (nvrtc_.arch_count == nullptr || nvrtc_.archs == nullptr) return {};
  if (nvrtc_.arch_count(&count) != 0 || count <= 0 || count > 1000) return {};
  std::vector<int> out(static_cast<std::size_t>(count));
  return nvrtc_.archs(out.data()) == 0 ? out : std::vector<int>();
}

NvrtcResult Nvrtc::run(const NvrtcRequest& request, bool want_ptx) const {
  NvrtcResult out;
  Program program = nullptr;
  if (nvrtc_.create(&program, request.source.c_str(), request.name.c_str(), 0, nullptr, nullptr) !=
      0) {
    out.log = "NVRTC cannot create a program";
    return out;
  }
  for (const std::string& name : request.instantiations) nvrtc_.add_name(program, name.c_str());
  std::vector<const char*> options;
  for (const std::string& option : request.options) options.push_back(option.c_str());
  out.ok = nvrtc_.compile(program, static_cast<int>(options.size()), options.data()) == 0;
  const auto fetch = [&](Size size_of, Read read) {
    std::size_t size = 0;
    std::string text;
    if (size_of(program, &size) != 0 || size == 0) return text;
    text.resize(size);
    if (read(program, text.data()) != 0) text.clear();
    return text;
  };
  out.log = fetch(nvrtc_.log_size, nvrtc_.log);
  while (!out.log.empty() && (out.log.back() == '\0' || out.log.back() == '\n')) out.log.pop_back();
  if (out.ok) {
    out.cubin =
        want_ptx ? fetch(nvrtc_.ptx_size, nvrtc_.ptx) : fetch(nvrtc_.cubin_size, nvrtc_.cubin);
    for (const std::string& name : request.instantiations) {
      const char* lowered = nullptr;  // lives as long as the program
      const bool known = nvrtc_.lowered(program, name.c_str(), &lowered) == 0;
      out.functions.emplace_back(known && lowered != nullptr ? lowered : "");
    }
  }
  nvrtc_.destroy(&program);
  return out;
}

NvrtcResult Nvrtc::compile(const NvrtcRequest& request) const { return run(request, false); }
std::string Nvrtc::ptx(const NvrtcRequest& request) const { return run(request, true).cubin; }

}  // namespace warmgate::jit
