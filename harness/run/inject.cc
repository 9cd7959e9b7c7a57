#include "harness/run/inject.h"

#include <algorithm>
#include <cstdlib>

#include "harness/scenario/files.h"
#include "harness/scenario/problems.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

void put_cuda(const fs::path& found, const target::TargetSpec&, target::WorkerSpec& worker) {
  worker.env.emplace("CUDA_INJECTION64_PATH", found.string());
}

void put_nccl(const fs::path& found, const target::TargetSpec&, target::WorkerSpec& worker) {
  worker.env.emplace("NCCL_PROFILER_PLUGIN", found.string());
}

// A dump names the kernel that does not end. Memory and images that are not needed for that are
// left out: the whole device would be dumped.
void put_core(const fs::path&, const target::TargetSpec& spec, target::WorkerSpec& worker) {
  const fs::path folder = target::events_folder(spec);
  worker.env.emplace("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "1");
  worker.env.emplace("CUDA_COREDUMP_PIPE", (folder / target::kCorePipe).string() + "%p");
  worker.env.emplace("CUDA_COREDUMP_FILE", (folder / target::kCoreFile).string() + "%p");
  worker.env.emplace("CUDA_COREDUMP_GENERATION_FLAGS",
                     "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,"
                     "skip_local_memory");
}

// In front of what the scenario, or whoever started us, has there: a sitecustomize.py that ours
// hides is run by it, one that hides ours would leave us out.
void put_python(const fs::path& found, const target::TargetSpec&, target::WorkerSpec& worker) {
  const char* inherited = std::getenv("PYTHONPATH");
  const auto own = worker.env.find("PYTHONPATH");
  const std::string behind = own != worker.env.end() ? own->second
                             : inherited != nullptr  ? std::string(inherited)
                                                     : std::string();
  const std::string folder = fs::absolute(found).parent_path().string();
  worker.env["PYTHONPATH"] = behind.empty() ? folder : folder + ":" + behind;
}

}  // namespace

bool asked_for(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::vector<InjectedProbe>& probes() {
  static const std::vector<InjectedProbe> all = {
      {"cuda",
       "the CUDA driver inside every process",
       "lib/libwarmgate_probe.so",
       "`ci/build release warmgate_probe`",
       {"code-ready", "memory-kept"},
       put_cuda},
      {"nccl",
       "NCCL inside every process: its communicators and what enters them",
       "lib/libwarmgate_nccl.so",
       "`ci/build release warmgate_nccl`",
       {"ranks-agree"},
       put_nccl},
      {"core",
       "the kernel of a hang, by a core dump of CUDA's; not with cuda",
       "",
       "",
       {"the reason of a hang"},
       put_core},
      {"python",
       "every Python process: Triton, torch, vLLM, exceptions",
       "fixtures/probe/python/sitecustomize.py",
       "the source tree or an unpacked package",
       {"keys-covered", "workspace-fits", "starts (causes)", "stacks of a hang"},
       put_python},
      {"spans",
       "the engine's own spans (OpenTelemetry), received on loopback",
       "",
       "",
       {"spans-agree", "starts (exceptions and phases without a log)"},
       nullptr},
  };
  return all;
}

fs::path find(const InjectedProbe& probe) {
  if (probe.file.empty()) return {};
  std::error_code failed;
  constexpr std::string_view kData = "fixtures/";
  if (probe.file.starts_with(kData)) {
    const fs::path file = scenario::find_fixtures({}) / probe.file.substr(kData.size());
    return fs::exists(file, failed) ? file : fs::path();
  }
  std::vector<fs::path> folders;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) folders.push_back(self.parent_path());
  if (const char* bin = std::getenv("WARMGATE_BIN_DIR")) folders.push_back(fs::absolute(bin));
  for (const fs::path& folder : folders) {
    const fs::path file = folder.parent_path() / probe.file;
    if (fs::exists(file, failed)) return file;
  }
  return {};
}

std::vector<std::string> wrong_with(const std::vector<std::string>& names) {
  std::vector<std::string> known, out;
  for (const InjectedProbe& probe : probes()) known.push_back(probe.name);
  for (const std::string& name : names) {
    const auto probe = std::find_if(probes().begin(), probes().end(),
                                    [&](const InjectedProbe& each) { return each.name == name; });
    if (probe == probes().end()) {
      out.push_back("there is no probe '" + name + "'; one of " + scenario::list_of(known));
    } else if (!probe->file.empty() && find(*probe).empty()) {
      out.push_back(probe->file + " is not beside the folder of this program; " + probe->made +
                    " brings it");
    }
  }
  // The driver writes no core dump where CUPTI is subscribed, and says so on stderr alone.
  const auto named = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (named("cuda") && named("core"))
    out.emplace_back(
        "cuda and core exclude each other: the driver dumps nothing where a tool "
        "uses CUPTI; ask for one of them");
  return out;
}

void inject(const std::vector<std::string>& names, target::TargetSpec& spec) {
  for (const InjectedProbe& probe : probes()) {
    if (probe.put == nullptr || !asked_for(names, probe.name)) continue;
    spec.events_dir = true;
    const fs::path found = probe.file.empty() ? fs::path() : find(probe);
    for (target::WorkerSpec& worker : spec.workers) probe.put(found, spec, worker);
  }
}

}  // namespace warmgate::run
