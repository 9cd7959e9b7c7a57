#include "harness/target/server/gpu.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <system_error>
#include <thread>

namespace warmgate::target {
namespace {

// The few entry points of NVML (nvml.h of CUDA 11 and later) that are asked.
using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*by_uuid)(const char*, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count)(Device, unsigned*) = nullptr;
  int (*mig_handle)(Device, unsigned, Device*) = nullptr;
  bool there = false;

  Nvml() {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [&](auto& entry, const char* name) {
      entry = reinterpret_cast<std::decay_t<decltype(entry)>>(::dlsym(library, name));
      return entry != nullptr;
    };
    const bool all = find(init, "nvmlInit_v2") && find(count, "nvmlDeviceGetCount_v2") &&
                     find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
                     find(by_uuid, "nvmlDeviceGetHandleByUUID") &&
                     find(uuid, "nvmlDeviceGetUUID") && find(memory, "nvmlDeviceGetMemoryInfo");
    if (find(mig_mode, "nvmlDeviceGetMigMode")) {
      find(mig_count, "nvmlDeviceGetMaxMigDeviceCount");
      find(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex");
    }
    there = all && init() == 0;
  }
};

const Nvml& nvml() {
  static const Nvml library;
  return library;
}

std::string uuid_of(Device device) {
  char text[96] = "";
  return nvml().uuid(device, text, sizeof text) == 0 ? text : "";
}

std::vector<std::string> mig_parts(Device device) {
  unsigned now = 0, next = 0, most = 0;
  const Nvml& n = nvml();
  if (!n.mig_mode || !n.mig_count || !n.mig_handle) return {};
  if (n.mig_mode(device, &now, &next) != 0 || now == 0) return {};
  std::vector<std::string> out;
  if (n.mig_count(device, &most) != 0) return out;
  for (unsigned i = 0; i < most; ++i) {
    Device part = nullptr;
    if (n.mig_handle(device, i, &part) != 0) continue;
    if (std::string uuid = uuid_of(part); !uuid.empty()) out.push_back(std::move(uuid));
  }
  return out;
}

std::vector<GpuDevice> ask() {
  std::vector<GpuDevice> out;
  unsigned number = 0;
  if (!nvml().there || nvml().count(&number) != 0) return out;
  for (unsigned i = 0; i < number; ++i) {
    Device device = nullptr;
    if (nvml().handle(i, &device) != 0) continue;
    GpuDevice gpu{uuid_of(device), mig_parts(device)};
    if (!gpu.uuid.empty()) out.push_back(std::move(gpu));
  }
  return out;
}

void add_whole(const GpuDevice& gpu, std::vector<std::string>& out) {
  if (gpu.parts.empty()) {
    out.push_back(gpu.uuid);
  } else {
    out.insert(out.end(), gpu.parts.begin(), gpu.parts.end());
  }
}

bool add_named(const std::vector<GpuDevice>& all, std::string_view word,
               std::vector<std::string>& out) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error == std::errc() && end == word.data() + word.size()) {
    if (index >= all.size()) return false;
    add_whole(all[index], out);
    return true;
  }
  if (word.size() < 5) return false;  // GPU- and MIG- alone name nothing
  for (const GpuDevice& gpu : all) {
    if (gpu.uuid.rfind(word, 0) == 0) {
      add_whole(gpu, out);
      return true;
    }
    for (const std::string& part : gpu.parts) {
      if (part.rfind(word, 0) != 0) continue;
      out.push_back(part);
      return true;
    }
  }
  return false;
}

Fd open_lock(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    throw std::system_error(errno, std::generic_category(), file.string());
  }
  if (!S_ISREG(info.st_mode)) {
    throw std::system_error(EINVAL, std::generic_category(), file.string() + " is no plain file");
  }
  ::fchmod(fd.get(), 0666);  // users of one machine share its GPUs; fails for all but its owner
  return fd;
}

}  // namespace

const std::vector<GpuDevice>& gpu_devices() {
  static const std::vector<GpuDevice> devices = ask();
  return devices;
}

std::vector<std::string> visible_gpus(const std::vector<GpuDevice>& all,
                                      const std::optional<std::string>& visible) {
  std::vector<std::string> out;
  if (!visible) {
    for (const GpuDevice& gpu : all) add_whole(gpu, out);
    return out;
  }
  for (std::size_t at = 0; at <= visible->size();) {
    const std::size_t end = std::min(visible->find(',', at), visible->size());
    std::string_view word = std::string_view(*visible).substr(at, end - at);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (!add_named(all, word, out)) break;
    at = end + 1;
  }
  std::set<std::string> seen;
  std::erase_if(out, [&](const std::string& uuid) { return !seen.insert(uuid).second; });
  return out;
}

std::optional<std::uint64_t> gpu_used_bytes(const std::string& uuid) {
  Device device = nullptr;
  Memory bytes{};
  if (!nvml().there || nvml().by_uuid(uuid.c_str(), &device) != 0) return std::nullopt;
  if (nvml().memory(device, &bytes) != 0) return std::nullopt;
  return bytes.used;
}

bool wait_until_steady(const std::vector<std::string>& uuids, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kStill = std::chrono::seconds(1);
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  const auto look = [&] {
    std::vector<std::optional<std::uint64_t>> out;
    for (const std::string& uuid : uuids) out.push_back(gpu_used_bytes(uuid));
    return out;
  };
  auto last = look();
  if (std::none_of(last.begin(), last.end(), [](const auto& used) { return used.has_value(); })) {
    return true;  // nothing that could be waited for
  }
  auto since = Clock::now();
  while (Clock::now() - since < kStill) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto now = look();
    if (now == last) continue;
    last = std::move(now);
    since = Clock::now();
  }
  return true;
}

GpuLock::GpuLock(std::vector<std::string> uuids, const std::filesystem::path& folder,
                 const CancelToken& cancel, std::chrono::milliseconds timeout,
                 const std::function<void(const std::string&)>& on_wait) {
  std::sort(uuids.begin(), uuids.end());
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (const std::string& uuid : uuids) {
    Fd fd = open_lock(folder / ("warmgate-gpu-" + uuid + ".lock"));
    bool told = false;
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        throw std::system_error(errno, std::generic_category(), "lock of " + uuid);
      }
      if (cancel.cancelled() || std::chrono::steady_clock::now() >= until) {
        missing_ = uuid;
        files_.clear();
        return;
      }
      if (on_wait && !told) on_wait(uuid);
      told = true;
      pollfd watch{cancel.fd(), POLLIN, 0};
      ::poll(&watch, 1, 100);
    }
    files_.push_back(std::move(fd));
  }
}

}  // namespace warmgate::target
