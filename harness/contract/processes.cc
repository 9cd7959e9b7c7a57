#include "harness/contract/processes.h"

#include <algorithm>

namespace warmgate::contract {

Processes::Processes(const View& view) : view_(view) {
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    const int rank = rank_of(e, -1);
    if (e.ev == "hello" && rank >= 0 && has_number(e, "pid")) ranks_[e.num("pid")] = rank;
    if (!says_ready(e)) continue;
    if (rank >= 0) ready_[rank] = i;
    if (!last_ || e.t_ns > view.event(*last_).t_ns) last_ = i;
  }
}

std::optional<int> Processes::rank(const trace::Event& event) const {
  if (const int own = rank_of(event, -1); own >= 0) return own;
  const auto it = has_number(event, "pid") ? ranks_.find(event.num("pid")) : ranks_.end();
  return it == ranks_.end() ? std::nullopt : std::optional<int>(it->second);
}

std::optional<std::size_t> Processes::ready(const trace::Event& event) const {
  const std::optional<int> who = rank(event);
  const auto it = who ? ready_.find(*who) : ready_.end();
  return it == ready_.end() ? last_ : std::optional<std::size_t>(it->second);
}

bool Processes::after_ready(const trace::Event& event) const {
  const std::optional<std::size_t> said = ready(event);
  if (!said) return false;
  const trace::Event& e = view_.event(*said);
  return event.t_ns > e.t_ns && elapsed_ns(e.t_ns, event.t_ns) > std::max(e.res_ns, event.res_ns);
}

}  // namespace warmgate::contract
