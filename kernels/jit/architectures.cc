// Which GPU architectures this machine's NVRTC compiles for. The library's list holds numbers only,
// so whether a letter (sm_90a, sm_100f) is legal is found out by compiling nothing for it.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "kernels/jit/jit.h"
#include "kernels/jit/nvrtc.h"

namespace warmgate::jit {
namespace {

// In every release from that version on (CUDA toolkit documentation, nvrtc --gpu-architecture).
bool certainly_there(const std::string& arch, const NvrtcFile& file) {
  static constexpr const char* kSince12[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"};
  static constexpr const char* kSince128[] = {"sm_100", "sm_100a", "sm_120", "sm_120a"};
  const auto among = [&](const auto& names) {
    return std::any_of(std::begin(names), std::end(names),
                       [&](const char* name) { return arch == name; });
  };
  return (file.at_least(12, 0) && among(kSince12)) || (file.at_least(12, 8) && among(kSince128));
}

std::string ask(const std::string& arch, const NvrtcFile& file) {
  std::unique_ptr<Nvrtc> library;
  try {
    library = std::make_unique<Nvrtc>(file.path);
  } catch (const std::runtime_error&) {
    return "";  // it compiles for none, which is said elsewhere
  }
  NvrtcRequest nothing;
  nothing.name = "nothing.cu";
  nothing.source = "\n";
  nothing.options = {"-arch=" + arch};
  const NvrtcResult result = library->compile(nothing);
  // "invalid value for --gpu-architecture", or of a later stage "no value … with --nv_arch".
  if (result.ok || result.log.find("arch") == std::string::npos) return "";
  std::string out = "NVRTC " + file.version + " has no " + arch;
  std::string known;
  for (const int number : library->architectures())
    known += (known.empty() ? "" : ", ") + ("sm_" + std::to_string(number));
  return known.empty() ? out : out + "; it has " + known;
}

}  // namespace

std::string no_such_architecture(const std::string& arch) {
  static const NvrtcFile file = find_nvrtc();
  if (file.path.empty() || certainly_there(arch, file)) return "";
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard lock(mutex);
  const auto it = known.find(arch);
  if (it != known.end()) return it->second;
  return known.emplace(arch, ask(arch, file)).first->second;
}

}  // namespace warmgate::jit
