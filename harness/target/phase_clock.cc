#include "harness/target/phase_clock.h"

#include <algorithm>

namespace warmgate::target {
namespace {

PhaseClock::Time after(PhaseClock::Time from, double seconds) {
  const double safe = std::clamp(seconds, 0.0, 1e8);
  return from + std::chrono::duration_cast<PhaseClock::Time::duration>(
                    std::chrono::duration<double>(safe));
}

}  // namespace

PhaseClock::PhaseClock(const Deadlines& deadlines, const std::vector<std::string>& phases, Time now)
    : deadlines_(deadlines), start_(now), heard_(now), changed_(now) {
  if (deadlines.total_s) {
    total_s_ = *deadlines.total_s;
  } else {
    total_s_ = limit_s("");
    for (const std::string& phase : phases) total_s_ += limit_s(phase);
    total_s_ *= 2;
  }
}

double PhaseClock::limit_s(const std::string& phase) const {
  const auto own = deadlines_.phase_s.find(phase);
  return deadlines_.scale *
         (own != deadlines_.phase_s.end() ? own->second : deadlines_.default_phase_s);
}

void PhaseClock::begin(const std::string& speaker, int rank, std::string_view phase, Time now) {
  const auto [it, fresh] = running_.try_emplace(speaker);
  if (!fresh && it->second.phase == phase) return;
  it->second = {std::string(phase), rank, now};
  changed_ = now;
  last_phase_ = phase;
}

void PhaseClock::end(const std::string& speaker, std::string_view phase, Time now) {
  const auto it = running_.find(speaker);
  if (it == running_.end() || it->second.phase != phase) return;
  running_.erase(it);
  changed_ = now;
}

void PhaseClock::gone(const std::string& speaker, Time now) {
  if (running_.erase(speaker) > 0) changed_ = now;
}

std::vector<PhaseClock::Limit> PhaseClock::limits() const {
  std::vector<Limit> out;
  for (const auto& [speaker, running] : running_) {
    const double limit = limit_s(running.phase);
    out.push_back({after(running.since, limit), {"deadline", running.phase, running.rank, limit}});
  }
  // What is named when nobody's phase ran out: one that is running, else the last.
  const std::string phase = running_.empty() ? last_phase_ : running_.begin()->second.phase;
  if (running_.empty()) {
    const double limit = limit_s("");
    out.push_back({after(changed_, limit), {"deadline", phase, -1, limit}});
  }
  const double silence = deadlines_.silence_s * deadlines_.scale;
  out.push_back({after(heard_, silence), {"silence", phase, -1, silence}});
  out.push_back({after(start_, total_s_), {"deadline", phase, -1, total_s_}});
  return out;
}

std::optional<PhaseClock::Expiry> PhaseClock::expired(Time now) const {
  const std::vector<Limit> all = limits();
  const auto first = std::min_element(all.begin(), all.end(),
                                      [](const Limit& a, const Limit& b) { return a.at < b.at; });
  if (first->at > now) return std::nullopt;
  return first->expiry;
}

PhaseClock::Time PhaseClock::next() const {
  const std::vector<Limit> all = limits();
  return std::min_element(all.begin(), all.end(),
                          [](const Limit& a, const Limit& b) { return a.at < b.at; })
      ->at;
}

}  // namespace warmgate::target
