#include "kernels/jit/device_program.h"

#include "harness/trace/sha256.h"

namespace warmgate::jit {
namespace {

std::string program_text(const KernelSpec& spec) {
  // Errors name the file and line of the source tree.
  return "#line 1 \"kernels/jit/bodies/device_prelude.cuh\"\n" + std::string(device_prelude()) +
         "#line 1 \"" + std::string(spec.file) + "\"\n" + std::string(spec.source);
}

}  // namespace

std::vector<std::string> nvrtc_options(Mode mode, std::string_view arch, const NvrtcFile& file) {
  std::vector<std::string> options = {"--std=c++17", "-arch=" + std::string(arch)};
  if (file.at_least(13, 0)) {
    options.insert(options.end(), {"--Ofast-compile=max", "--minimal", "--no-cache"});
  }
  if (mode == Mode::kStrict) options.push_back("--diag-error=39,179");
  return options;
}

NvrtcRequest device_program(const KernelSpec& spec, const std::vector<Key>& keys,
                            std::vector<std::string> options) {
  NvrtcRequest request{program_text(spec), std::string(spec.name) + ".cu", std::move(options), {}};
  for (const Key& key : keys) request.instantiations.push_back(name_expression(key));
  return request;
}

std::string Addresses::of(const KernelSpec& spec, std::string_view key_text, Mode mode,
                          std::string_view arch) {
  const std::lock_guard lock(mutex_);
  std::string& prefix = prefixes_[{spec.name, mode, std::string(arch)}];
  if (prefix.empty()) {
    std::string text = program_text(spec);
    const auto add = [&](std::string_view part) { text.append("\n").append(part); };
    for (const std::string& option : nvrtc_options(mode, arch, file_)) add(option);
    add(arch);
    add(mode == Mode::kStrict ? "strict" : "lenient");
    add(file_.identity);
    add("entry 2");  // of what entries hold: functions are named since
    prefix = trace::sha256_hex(text) + "\n";
  }
  return trace::sha256_hex(prefix + std::string(key_text));
}

}  // namespace warmgate::jit
