// What every contract asks of a trace: in which phase an event happened, on which rank, and whether
// serving was reached. Computed once per judgement; never throws, whatever the events carry.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/trace/event.h"

namespace warmgate::contract {

/// The field as text without a copy; "" if absent or of another type. Lives as long as the event.
std::string_view text(const trace::Event& event, std::string_view key);
bool has_number(const trace::Event& event, std::string_view key);
/// How many faults an event claims: 0 only where the field is absent or exactly 0. What is no
/// number, or none that an integer holds, is a claim all the same.
std::int64_t claimed_faults(const trace::Event& event, std::string_view key);
/// The rank, or `fallback` where the event has none or an impossible one (negative).
int rank_of(const trace::Event& event, int fallback = 0);
/// "swaonly 43 (draft)"; for messages.
std::string layer_text(std::int64_t layer, std::string_view kind, std::string_view role);
/// "1 key", "3 keys".
std::string counted(std::size_t n, std::string_view noun);
/// later - earlier in ns, saturating: clocks of workers are claims like everything else.
std::int64_t elapsed_ns(std::int64_t earlier, std::int64_t later);
/// Does this event say that the whole engine can be used? Clocks that strike earlier (a process
/// that exists, a port that is open) say so only where the engine itself means it by them.
bool says_ready(const trace::Event& event);
/// The log alone says so: worth less than the word of the engine or of its endpoint.
bool log_says_ready(const trace::Event& event);
/// The layer number of an event as an int, -1 if it has none or an impossible one.
int layer_of(const trace::Event& event);

class View {
 public:
  explicit View(const trace::Trace& trace);
  const trace::Trace& trace() const { return trace_; }
  const trace::Event& event(std::size_t i) const { return trace_.events[i]; }
  std::size_t size() const { return trace_.events.size(); }

  /// The event's own `phase` field, else the phase its rank was in; "" before the first.
  std::string_view phase(std::size_t i) const { return phases_[i]; }
  /// Phases before `ready` in the order the target declares (without one: in the protocol's).
  bool is_startup(std::string_view phase) const { return startup_.count(phase) != 0; }
  /// warmup and capture: where work is done so that serving need not do it.
  static bool is_warmup(std::string_view phase) { return phase == "warmup" || phase == "capture"; }
  bool is_serving(std::string_view phase) const {
    return phase == "serve" || phase == "ready" || phase == "shutdown";
  }
  /// Some rank began the phase.
  bool reached(std::string_view phase) const { return begun_.count(phase) != 0; }
  /// Every rank that began the phase also ended it with status ok, and at least one did.
  bool completed(std::string_view phase) const;
  /// Some work was done in serve: a request, a step or a launch. A run without a workload ends its
  /// serve phase all the same, and has shown nothing of it.
  bool served() const { return served_; }
  bool emits(std::string_view kind) const;
  const std::vector<std::string>& declared() const { return declared_; }

 private:
  const trace::Trace& trace_;
  std::vector<std::string_view> phases_;
  std::vector<std::string> declared_;
  std::set<std::string, std::less<>> startup_;
  std::set<std::string_view> begun_, broken_;
  std::set<std::string> emits_;
  bool served_ = false;
};

/// Why a promise about serving could not be looked at: "" where something was served.
std::string nothing_served(const View& view);

/// The context's view, made at the first call. One thread a context.
const View& view_of(const Context& context);

}  // namespace warmgate::contract
