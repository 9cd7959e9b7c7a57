// GPUs as far as runs have to agree on them: which a server may use, who has them now, and whether
// their memory came back. Through NVML (libnvidia-ml by dlopen); without a driver there are none.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/target/fd.h"
#include "harness/target/target.h"

namespace warmgate::target {

struct GpuDevice {
  std::string uuid;                // GPU-…
  std::vector<std::string> parts;  // UUIDs of its MIG devices, if it is split (MIG-…)
};

/// Asked once.
const std::vector<GpuDevice>& gpu_devices();

/// UUIDs that CUDA_VISIBLE_DEVICES leaves: indices, UUIDs or their beginnings; nothing = all. Of a
/// GPU that is split the MIG devices that are named, else all of them. As CUDA does it, the list
/// ends at the first entry that is none.
std::vector<std::string> visible_gpus(const std::vector<GpuDevice>& all,
                                      const std::optional<std::string>& visible);

/// Bytes of device memory in use; nothing if NVML does not tell.
std::optional<std::uint64_t> gpu_used_bytes(const std::string& uuid);

/// Waits until the memory in use of these GPUs stands still for a second, at most `seconds`: a
/// driver gives memory of the last process back late. False if it never did.
bool wait_until_steady(const std::vector<std::string>& uuids, double seconds);

/// Holds GPUs against other runs of warmgate, each by a lock file warmgate-gpu-UUID.lock in
/// `folder`. The files stay: one that is removed locks nothing.
class GpuLock {
 public:
  GpuLock() = default;
  /// Waits until all are free, `cancel` is set or `timeout` over; in the order of the names, so
  /// that two runs do not wait for each other. `on_wait` hears which one is held, at the first
  /// wait. Throws std::system_error where a lock file cannot be used.
  GpuLock(std::vector<std::string> uuids, const std::filesystem::path& folder,
          const CancelToken& cancel, std::chrono::milliseconds timeout,
          const std::function<void(const std::string& uuid)>& on_wait = {});
  bool held() const { return missing_.empty(); }
  const std::string& missing() const { return missing_; }  // the one that did not become free

 private:
  std::vector<Fd> files_;
  std::string missing_;
};

}  // namespace warmgate::target
