#include "harness/probe/captures.h"

namespace warmgate::probe {

std::uint64_t Captures::begin(std::uint64_t stream, long thread, CaptureMode mode,
                              std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  for (Capture& slot : captures_) {
    if (slot.number != 0) continue;
    slot = {stream, thread, mode, now_ns, ++last_};
    open_.fetch_add(1, std::memory_order_relaxed);
    return slot.number;
  }
  return 0;
}

Capture Captures::end(std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  for (Capture& slot : captures_) {
    if (slot.number == 0 || slot.stream != stream) continue;
    const Capture out = slot;
    slot = {};
    open_.fetch_sub(1, std::memory_order_relaxed);
    return out;
  }
  return {};
}

Capture Captures::around(long thread) {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  Capture global;
  for (const Capture& slot : captures_) {
    if (slot.number == 0) continue;
    if (slot.thread == thread) return slot;
    if (slot.mode == CaptureMode::kGlobal) global = slot;
  }
  return global;
}

}  // namespace warmgate::probe
