#include "harness/contract/probe_view.h"

#include <algorithm>

#include "harness/contract/builtin.h"
#include "harness/trace/quantity.h"

namespace warmgate::contract {

std::string rounded_bytes(std::int64_t bytes) {
  return trace::figure_text("kv_bytes", static_cast<double>(bytes), "bytes", false);
}

bool was_asked(const View& view, std::string_view probe) {
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev != "probe" || text(e, "status") != "asked") continue;
    const std::vector<std::string> names = e.strings("probes");
    // Before there were several, the one was meant.
    if (names.empty() ? probe == "cuda" : std::count(names.begin(), names.end(), probe) > 0)
      return true;
  }
  return false;
}

ProbeView::ProbeView(const View& view) : view_(view), asked_(was_asked(view, "cuda")) {
  std::optional<std::int64_t> by_log_ns;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (log_says_ready(e) && !by_log_ns) by_log_ns = e.t_ns;
    // Each process of an engine may say it for itself; the last one decides.
    if (says_ready(e)) ready_ns_ = std::max(ready_ns_.value_or(e.t_ns), e.t_ns);
    if (e.src != "probe") continue;
    events_.push_back(i);
    if (e.ev != "probe") continue;
    if (text(e, "status") == "attached") attached_ = true;
    if (text(e, "status") == "detached") detached_ = true;
    if (in_the_way_.empty()) in_the_way_ = e.str("reason");
  }
  if (!ready_ns_) ready_ns_ = by_log_ns;
}

bool ProbeView::after_ready(const trace::Event& event) const {
  return ready_ns_ && event.t_ns > *ready_ns_ && elapsed_ns(*ready_ns_, event.t_ns) > event.res_ns;
}

std::string ProbeView::limit() const {
  return detached_ ? "the probe let go some time after ready; what came later is not observed" : "";
}

std::optional<Result> ProbeView::not_judged(std::string_view contract, bool ready_needed) const {
  if (events_.empty() && asked_)
    return not_observed(contract, {}, "no process that uses CUDA had the probe in it");
  if (events_.empty()) return not_applicable(contract, "the CUDA probe was not asked for");
  if (!attached_)
    return not_observed(
        contract, {},
        "the probe did not attach" + (in_the_way_.empty() ? std::string() : ": " + in_the_way_));
  if (ready_needed && !ready_ns_)
    return not_observed(contract, {}, "the engine was never ready, so nothing came after it");
  return std::nullopt;
}

}  // namespace warmgate::contract
