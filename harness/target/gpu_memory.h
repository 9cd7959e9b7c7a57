// Whether the memory of GPUs comes back when a run has ended: what was in use before its first
// worker against what is in use after its last one. The driver gives it back late, so it is waited
// for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/target/companion.h"
#include "harness/trace/event.h"

namespace warmgate::target {

/// Bytes in use of the GPU with this UUID; nothing if nobody tells.
using GpuUsed = std::function<std::optional<std::uint64_t>(const std::string& uuid)>;

class GpuMemoryCheck {
 public:
  /// `used`: nothing = NVML.
  explicit GpuMemoryCheck(std::vector<std::string> uuids, GpuUsed used = {});
  /// Notes what is in use now.
  void begin();
  /// Waits until each GPU has at most 256 MiB more in use than at begin(), at most `settle_s`
  /// seconds in all. Of each an event: {"ev":"leftover","what":"gpu_memory","path":UUID,"bytes":…}
  /// where it did not come back, else {"ev":"gpu_memory","path":UUID,"before":…,"after":…,"ms":…}.
  /// None of a GPU that does not tell.
  std::vector<trace::Event> settle(double settle_s) const;

 private:
  std::vector<std::string> uuids_;
  GpuUsed used_;
  std::vector<std::pair<std::string, std::uint64_t>> before_;
};

/// The check around a run. `inner` may be null, else it outlives this.
std::unique_ptr<Companion> make_gpu_memory_companion(GpuMemoryCheck check, double settle_s,
                                                     Companion* inner);

}  // namespace warmgate::target
