#include "harness/contract/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "harness/trace/vocabulary.h"

namespace warmgate::contract {

std::string_view text(const trace::Event& event, std::string_view key) {
  return event.body.text(key);
}

bool has_number(const trace::Event& event, std::string_view key) {
  const trace::Fields::Kind kind = event.body.kind(key);
  return kind == trace::Fields::Kind::kInteger || kind == trace::Fields::Kind::kReal;
}

std::int64_t claimed_faults(const trace::Event& event, std::string_view key) {
  using Kind = trace::Fields::Kind;
  if (!event.body.contains(key)) return 0;
  if (event.body.kind(key) == Kind::kInteger) return event.num(key);
  if (event.body.kind(key) == Kind::kReal && event.real(key) == 0) return 0;
  const std::int64_t count = event.num(key);
  return count != 0 ? count : 1;
}

int rank_of(const trace::Event& event, int fallback) {
  return event.rank && *event.rank >= 0 ? *event.rank : fallback;
}

int layer_of(const trace::Event& event) {
  const std::int64_t layer = event.num("layer", -1);
  return layer >= 0 && layer <= std::numeric_limits<int>::max() ? static_cast<int>(layer) : -1;
}

bool says_ready(const trace::Event& event) {
  if (event.ev != "ready") return false;
  const std::string_view clock = text(event, "clock");
  const bool own_word = event.src == "channel" || event.src == "python";
  return clock == "health" || (own_word && (clock == "process" || clock == "port"));
}

bool log_says_ready(const trace::Event& event) {
  return event.ev == "ready" && event.src == "log" && text(event, "clock") == "log";
}

std::string layer_text(std::int64_t layer, std::string_view kind, std::string_view role) {
  std::string out = layer >= 0 ? fmt::format("layer {}", layer) : std::string("the engine");
  if (layer < 0) return out;
  if (!role.empty() || !kind.empty())
    out += fmt::format(" ({}{}{})", role, role.empty() || kind.empty() ? "" : ", ", kind);
  return out;
}

std::string counted(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::int64_t elapsed_ns(std::int64_t earlier, std::int64_t later) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(later, earlier, &difference)) return difference;
  return later > earlier ? std::numeric_limits<std::int64_t>::max()
                         : std::numeric_limits<std::int64_t>::min();
}

View::View(const trace::Trace& trace) : trace_(trace), emits_(trace.emits()) {
  declared_ = trace.declared_phases;
  if (std::find(declared_.begin(), declared_.end(), "ready") == declared_.end())
    for (std::string_view phase : trace::phases()) {
      if (std::find(declared_.begin(), declared_.end(), phase) == declared_.end())
        declared_.emplace_back(phase);
    }
  for (const std::string& phase : declared_) {
    if (phase == "ready") break;
    startup_.insert(phase);
  }
  phases_.reserve(trace.events.size());
  // A single worker may well not know its rank, while the harness calls it 0.
  const int unnamed = trace.world <= 1 ? 0 : -1;
  std::map<int, std::string_view> current;
  std::set<std::pair<int, std::string_view>> open;
  for (const trace::Event& e : trace.events) {
    const std::string_view named = text(e, "phase");
    const int rank = rank_of(e, unnamed);
    if (e.ev == "phase_begin") {
      current[rank] = named;
      begun_.insert(named);
      open.insert({rank, named});
    } else if (e.ev == "phase_end") {
      // Between two phases the earlier one still owns what happens.
      current[rank] = named;
      open.erase({rank, named});
      if (text(e, "status") != "ok") broken_.insert(named);
    }
    const auto it = current.find(rank);
    phases_.push_back(!named.empty()        ? named
                      : it == current.end() ? std::string_view()
                                            : it->second);
    const bool work = e.ev == "launch" || e.ev == "step" || e.ev == "workspace";
    served_ = served_ || e.ev == "request" || (work && phases_.back() == "serve");
  }
  for (const auto& [rank, phase] : open) broken_.insert(phase);
}

std::string nothing_served(const View& view) {
  if (!view.reached("serve")) return "the run ended before serving";
  return view.served() ? "" : "nothing was served: the run had no request";
}

const View& view_of(const Context& context) {
  if (!context.view) context.view = std::make_shared<const View>(context.trace);
  return *context.view;
}

bool View::completed(std::string_view phase) const {
  return reached(phase) && broken_.count(phase) == 0;
}

bool View::emits(std::string_view kind) const { return emits_.count(std::string(kind)) != 0; }

}  // namespace warmgate::contract
