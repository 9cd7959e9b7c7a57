#include "harness/target/gpu_memory.h"

#include <chrono>
#include <thread>

#include "harness/target/forwarding_companion.h"
#include "harness/target/server/gpu.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

// Contexts of other processes come and go, and the driver's own tables grow with them.
constexpr std::uint64_t kSlack_bytes = 256ull << 20;

class GpuMemoryCompanion : public ForwardingCompanion {
 public:
  GpuMemoryCompanion(GpuMemoryCheck check, double settle_s, Companion* inner)
      : ForwardingCompanion(inner), check_(std::move(check)), settle_s_(settle_s) {}

  void prepare(EventSink& sink, const std::string& marker) override {
    sink_ = &sink;
    check_.begin();
    ForwardingCompanion::prepare(sink, marker);
  }
  void close(const RunEnd& end) override {
    ForwardingCompanion::close(end);
    if (end.interrupted || sink_ == nullptr) return;
    for (trace::Event& event : check_.settle(settle_s_)) sink_->add(std::move(event));
  }

 private:
  GpuMemoryCheck check_;
  double settle_s_;
  EventSink* sink_ = nullptr;
};

}  // namespace

GpuMemoryCheck::GpuMemoryCheck(std::vector<std::string> uuids, GpuUsed used)
    : uuids_(std::move(uuids)), used_(used ? std::move(used) : GpuUsed(gpu_used_bytes)) {}

void GpuMemoryCheck::begin() {
  before_.clear();
  for (const std::string& uuid : uuids_)
    if (const auto bytes = used_(uuid)) before_.emplace_back(uuid, *bytes);
}

std::vector<trace::Event> GpuMemoryCheck::settle(double settle_s) const {
  std::vector<trace::Event> out;
  const std::int64_t begin = trace::now_ns();
  const std::int64_t until = begin + static_cast<std::int64_t>(settle_s * 1e9);
  for (const auto& [uuid, before] : before_) {
    std::optional<std::uint64_t> now = used_(uuid);
    // Most of it is back at once: short naps first.
    for (int nap_ms = 5; now && *now > before + kSlack_bytes && trace::now_ns() < until;
         nap_ms = std::min(100, 2 * nap_ms)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(nap_ms));
      now = used_(uuid);
    }
    if (!now) continue;
    if (*now > before + kSlack_bytes) {
      out.push_back(trace::harness_event(
          "leftover", {{"what", "gpu_memory"}, {"path", uuid}, {"bytes", *now - before}}));
    } else {
      out.push_back(trace::harness_event(
          "gpu_memory", {{"path", uuid},
                         {"before", before},
                         {"after", *now},
                         {"ms", static_cast<double>(trace::now_ns() - begin) / 1e6}}));
    }
  }
  return out;
}

std::unique_ptr<Companion> make_gpu_memory_companion(GpuMemoryCheck check, double settle_s,
                                                     Companion* inner) {
  return std::make_unique<GpuMemoryCompanion>(std::move(check), settle_s, inner);
}

}  // namespace warmgate::target
