#include "harness/run/doctor.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "harness/contract/subprocess.h"
#include "harness/explain/reader.h"
#include "harness/run/fit.h"
#include "harness/run/inject.h"
#include "harness/run/prepare.h"
#include "harness/run/run_dir.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using State = Capability::State;

std::string_view to_string(State state) {
  switch (state) {
    case State::kThere:
      return "there";
    case State::kLimited:
      return "limited";
    case State::kMissing:
      return "missing";
  }
  return "missing";
}

namespace {

std::string error_text() { return std::strerror(errno); }

std::string read_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

Capability program(const std::string& name, std::vector<std::string> affects) {
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    if (::access(path.c_str(), X_OK) == 0) return {name, State::kThere, path.string(), affects};
  }
  return {name, State::kMissing, "not on PATH", std::move(affects)};
}

Capability engine(const Options& options) {
  const fs::path path = find_engine(options.engine);
  const bool runs = !path.empty() && ::access(path.c_str(), X_OK) == 0;
  return {"warmgate-engine",
          runs ? State::kThere : State::kMissing,
          runs ? path.string() : "not beside this program; build it, or name it with --engine",
          {"native targets"}};
}

Capability devices(const Options& options) {
  const EngineDevices has = ask_devices(find_engine(options.engine));
  std::string names;
  for (const std::string& name : has.names) names += (names.empty() ? "" : ", ") + name;
  return {"devices",
          has.told ? State::kThere : State::kMissing,
          has.told ? "the engine has ops for " + names : "the engine does not tell",
          {"native targets on other devices"}};
}

Capability compiler() {
  const jit::NvrtcInfo& info = jit::nvrtc();
  if (info.available) {
    return {"NVRTC",
            State::kThere,
            info.version + " at " + info.path,
            {"keys-valid (each architecture's compiler)"}};
  }
  return {"NVRTC",
          State::kMissing,
          info.why_not,
          {"keys-valid (judged by the host half alone, no architecture is compiled for)"}};
}

Capability row_of(const InjectedProbe& probe) {
  const std::string name = "probe " + probe.name;
  if (probe.file.empty()) return {name, State::kThere, probe.about, probe.serves};
  const std::string found = find(probe).string();
  if (found.empty()) {
    return {name, State::kMissing,
            "no " + probe.file + " beside the folder of this program; " + probe.made + " brings it",
            probe.serves};
  }
  return {name, State::kThere, probe.about + ": " + found, probe.serves};
}

Capability log_grammars() {
  return {"RE2",
          explain::available() ? State::kThere : State::kMissing,
          explain::available() ? "logs of engines are read" : explain::availability(),
          {"warmgate explain", "server targets (phases, causes and figures from the log)"}};
}

Capability gpu() {
  const std::vector<std::string> affects = {"device cuda", "needs.gpus", "needs.gpu_gib"};
  std::error_code failed;
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", failed)) {
    count += entry.is_directory() ? 1 : 0;
  }
  if (failed || count == 0) {
    return {"GPU", State::kMissing, "no NVIDIA driver or no GPU; device meta needs none", affects};
  }
  return {"GPU", State::kThere,
          fmt::format("{} GPU(s), {}", count, read_line("/proc/driver/nvidia/version")), affects};
}

Capability pidfd() {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return {"pidfd",
          fd.valid() ? State::kThere : State::kMissing,
          fd.valid() ? "ends of workers are seen at once" : error_text(),
          {"starts", "times of every run"}};
}

Capability subreaper() {
  int value = 0;
  const bool there = ::prctl(PR_GET_CHILD_SUBREAPER, &value, 0, 0, 0) == 0;
  return {"subreaper",
          there ? State::kThere : State::kMissing,
          there ? "daemonised descendants are found and ended" : error_text(),
          {"nothing-left-behind"}};
}

// As the engine's ranks use it: a futex that is not private, in memory shared by descriptor.
Capability shared_futex() {
  const std::vector<std::string> affects = {"ranks-agree", "native targets with tp > 1"};
  const UniqueFd fd(::memfd_create("warmgate-doctor", MFD_CLOEXEC));
  if (!fd.valid() || ::ftruncate(fd.get(), 4096) != 0) {
    return {"memfd and futex", State::kMissing, "memfd_create: " + error_text(), affects};
  }
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return {"memfd and futex", State::kMissing, "mmap: " + error_text(), affects};
  }
  const long woken = ::syscall(SYS_futex, memory, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  const std::string why = woken < 0 ? "futex: " + error_text() : "ranks wait without spinning";
  ::munmap(memory, 4096);
  return {"memfd and futex", woken < 0 ? State::kMissing : State::kThere, why, affects};
}

Capability kernel_cache(const Options& options) {
  const std::vector<std::string> affects = {"compile events of source disk", "time_to_ready_s"};
  const fs::path dir = options.cache_dir.empty() ? jit::default_cache_dir() : options.cache_dir;
  if (dir.empty()) {
    return {"kernel cache", State::kMissing, "no HOME and no WARMGATE_KERNEL_CACHE: always cold",
            affects};
  }
  std::error_code failed;
  fs::create_directories(dir, failed);
  std::string probe = (dir / "doctor-XXXXXX").string();
  const UniqueFd fd(failed ? -1 : ::mkstemp(probe.data()));
  if (!fd.valid()) {
    return {"kernel cache", State::kLimited,
            fmt::format("{} cannot be written: always cold", dir.string()), affects};
  }
  ::unlink(probe.c_str());
  return {"kernel cache", State::kThere, dir.string(), affects};
}

Capability temp_space() {
  const fs::path root = temp_root();
  struct statvfs info {};
  if (::access(root.c_str(), W_OK) != 0 || ::statvfs(root.c_str(), &info) != 0) {
    return {
        "temporary folder", State::kMissing, root.string() + ": " + error_text(), {"every run"}};
  }
  const double mib =
      static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) / (1024.0 * 1024.0);
  return {"temporary folder",
          mib < 64 ? State::kLimited : State::kThere,
          fmt::format("{}, {:.0f} MiB free", root.string(), mib),
          {"every run"}};
}

Capability cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return {"cores",
          count < 2 ? State::kLimited : State::kThere,
          fmt::format("{} usable by this process", count),
          {"times of every run"}};
}

Capability memory() {
  std::ifstream in("/proc/meminfo");
  double available_kib = -1;
  for (std::string name, rest; in >> name && std::getline(in, rest);) {
    if (name == "MemAvailable:") available_kib = std::strtod(rest.c_str(), nullptr);
  }
  if (available_kib < 0) {
    return {"memory", State::kLimited, "/proc/meminfo cannot be read", {"peak_rss_bytes"}};
  }
  const double mib = available_kib / 1024;
  return {"memory",
          mib < 256 ? State::kLimited : State::kThere,
          fmt::format("{:.0f} MiB available", mib),
          {"every run"}};
}

Capability environments() {
  const std::vector<std::string> affects = {"artefacts: wheel"};
  const contract::Finished answer = contract::run_helper(
      {"python3", "-I", "-c",
       "import importlib.util as u, venv\n"
       "print([n for n in ('pip', 'ensurepip') if u.find_spec(n)][0])"},
      [] { return std::string(); }, std::chrono::seconds(10), 4096);
  const bool there = answer.started && answer.exit_code == 0;
  return {"Python environments", there ? State::kThere : State::kMissing,
          there ? "made by python3 -m venv"
                : "python3 with pip or ensurepip is not here (packages python3, python3-venv)",
          affects};
}

Capability containers() {
  const Capability docker = program("docker", {"artefacts: image"});
  if (docker.state == State::kThere) return docker;
  const Capability podman = program("podman", {"artefacts: image"});
  return podman.state == State::kThere ? podman : docker;
}

}  // namespace

std::vector<Capability> doctor(const Options& options) {
  std::vector<Capability> out = {
      engine(options),
      devices(options),
      compiler(),
      log_grammars(),
      gpu(),
      pidfd(),
      subreaper(),
      shared_futex(),
      kernel_cache(options),
      temp_space(),
      cores(),
      memory(),
      program("python3", {"Python workers of the tests"}),
      program("git", {"warmgate step under git bisect run", "artefacts: worktree"}),
      program("curl", {"artefacts: wheel by URL or commit"}),
      environments(),
      containers(),
      program("tar", {"warmgate bundle"}),
      program("gzip", {"warmgate bundle, and run of a .tar.gz"})};
  for (const InjectedProbe& probe : probes()) out.push_back(row_of(probe));
  return out;
}

}  // namespace warmgate::run
