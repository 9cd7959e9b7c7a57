// spans-agree: what an engine's spans say of its start is what its log and the probe of the driver
// say. Notes only: channels that disagree show that one of them is read wrongly, not that the start
// failed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/probe_view.h"
#include "harness/contract/view.h"
#include "harness/trace/span_phases.h"

namespace warmgate::contract {
namespace {

constexpr const char* kSpansAgree = "spans-agree";
constexpr std::int64_t kCoarsest_ns = 86'400'000'000'000;
constexpr double kFraction = 0.2;  // durations of two channels may differ by so much of the longer

// One phase of one rank as one channel tells it.
struct ToldPhase {
  std::int64_t begin_ns = 0, res_ns = 0;
  std::size_t event = 0;                        // its first beginning
  std::map<std::string, std::int64_t> took_ns;  // worker → the sum of its pieces

  void began(std::int64_t t_ns, std::int64_t res, std::size_t i, bool fresh) {
    if (fresh || t_ns < begin_ns) {
      begin_ns = t_ns;
      event = i;
    }
    res_ns = std::max(res_ns, std::clamp<std::int64_t>(res, 0, kCoarsest_ns));
  }
  std::int64_t longest_ns() const {
    std::int64_t out = 0;
    for (const auto& [worker, ns] : took_ns) out = std::max(out, ns);
    return out;
  }
};
using Phases = std::map<std::pair<int, std::string>, ToldPhase>;  // rank, phase

// Bounded, so that sums of what hostile traces claim stay numbers.
std::int64_t length_ns(std::int64_t begin, std::int64_t end) {
  return std::clamp<std::int64_t>(elapsed_ns(begin, end), 0, kCoarsest_ns);
}

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

class Agreement {
 public:
  explicit Agreement(const View& view)
      : view_(view), spans_(trace::span_phases(view.trace())), asked_(was_asked(view, "spans")) {
    for (std::size_t i = 0; i < view.size(); ++i) look(view.event(i), i);
    for (const trace::SpanPhase& piece : spans_) {
      const std::pair key(piece.rank, piece.phase);
      const bool fresh = by_spans_.count(key) == 0;
      ToldPhase& told = by_spans_[key];
      told.began(piece.begin_ns, piece.res_ns, piece.event, fresh);
      std::int64_t& took = told.took_ns[std::to_string(piece.pid)];
      took += length_ns(piece.begin_ns, piece.end_ns);
    }
  }

  Result run() {
    if (!asked_ && !received_) return not_applicable(kSpansAgree, "no spans were asked for");
    if (!attached_)
      return not_observed(kSpansAgree, {},
                          reason_.empty() ? "nothing listened for spans" : reason_);
    if (spans_.empty())
      return not_observed(kSpansAgree, {}, "no span that came stands for a phase");
    order();
    durations();
    late_code();
    ready();
    Result result = conclude(kSpansAgree, {});
    result.notes = notes_.take();
    if (by_log_.empty()) result.why = "no log told of phases; spans alone did";
    return result;
  }

 private:
  void look(const trace::Event& e, std::size_t i) {
    if (e.ev == "probe" && e.src == "span") {
      received_ = true;
      attached_ = attached_ || text(e, "status") == "attached";
      reason_ = e.str("reason");
    }
    if (says_ready(e) && (!ready_ || e.t_ns > view_.event(*ready_).t_ns)) ready_ = i;
    if (e.ev == "phase_begin" && e.src == "span") merged_ = true;
    if (e.src != "log" || (e.ev != "phase_begin" && e.ev != "phase_end")) return;
    const std::pair key(e.rank.value_or(-1), e.str("phase"));
    const std::pair open_key(key, e.str("worker"));
    if (e.ev == "phase_begin") {
      const bool fresh = by_log_.count(key) == 0;
      by_log_[key].began(e.t_ns, e.res_ns, i, fresh);
      open_[open_key] = e.t_ns;
    } else if (const auto begun = open_.find(open_key); begun != open_.end()) {
      if (!e.flag("inferred")) {
        by_log_[key].took_ns[e.str("worker")] += length_ns(begun->second, e.t_ns);
      }
      open_.erase(begun);
    }
  }

  void note(std::string key, std::string phase, std::string expected, std::string seen,
            std::string message, std::vector<std::size_t> events) {
    Finding f;
    f.contract = kSpansAgree;
    f.key = std::move(key);
    f.phase = std::move(phase);
    f.expected = std::move(expected);
    f.seen = std::move(seen);
    f.message = std::move(message);
    f.events = std::move(events);
    const std::string unit = f.key + "/" + std::to_string(notes_seen_++);
    if (notes_seen_ <= kMostNotes) notes_.add(std::move(f), unit);
  }

  // A began before B in the log and after it in the spans, by more than either can be wrong.
  void order() {
    for (const auto& [a, log_a] : by_log_) {
      const auto span_a = by_spans_.find(a);
      if (span_a == by_spans_.end()) continue;
      for (const auto& [b, log_b] : by_log_) {
        const auto span_b = by_spans_.find(b);
        if (a.first != b.first || span_b == by_spans_.end()) continue;
        if (!before(log_a, log_b) || !before(span_b->second, span_a->second)) continue;
        note("order/" + b.second, b.second,
             a.second + " before " + b.second + ", as the log has it", b.second + " first",
             fmt::format("the log has {} before {}, the spans have it after", a.second, b.second),
             {log_a.event, log_b.event, span_b->second.event, span_a->second.event});
      }
    }
  }

  static bool before(const ToldPhase& a, const ToldPhase& b) {
    return elapsed_ns(a.begin_ns, b.begin_ns) > std::max(a.res_ns, b.res_ns);
  }

  void durations() {
    for (const auto& [key, log] : by_log_) {
      const auto span = by_spans_.find(key);
      if (span == by_spans_.end() || log.took_ns.empty()) continue;
      const std::int64_t a = log.longest_ns(), b = span->second.longest_ns();
      const std::int64_t apart = std::abs(elapsed_ns(a, b));
      // Both ends of both are no finer than their clocks.
      if (apart <= 2 * (log.res_ns + span->second.res_ns)) continue;
      if (static_cast<double>(apart) <= kFraction * static_cast<double>(std::max(a, b))) continue;
      note("duration/" + key.second, key.second, fmt::format("{:.1f} s by the log", in_seconds(a)),
           fmt::format("{:.1f} s by its spans", in_seconds(b)),
           fmt::format("{} took {:.1f} s by the log and {:.1f} s by its spans", key.second,
                       in_seconds(a), in_seconds(b)),
           {log.event, span->second.event});
    }
  }

  // Code that a process compiled or read itself once its spans had said that warming was over.
  void late_code() {
    std::map<std::int64_t, const trace::SpanPhase*> last;
    for (const trace::SpanPhase& piece : spans_) {
      if (piece.pid == 0 || !View::is_warmup(piece.phase)) continue;
      const trace::SpanPhase*& known = last[piece.pid];
      if (known == nullptr || piece.end_ns > known->end_ns) known = &piece;
    }
    for (std::size_t i = 0; i < view_.size() && !last.empty(); ++i) {
      const trace::Event& e = view_.event(i);
      if (e.src != "probe" || e.ev != "module" || text(e, "origin") != "memory" || e.flag("lazy"))
        continue;
      const auto span = last.find(e.num("pid"));
      // After ready it is for code-ready to say.
      if (span == last.end() || !ready_ || e.t_ns >= view_.event(*ready_).t_ns) continue;
      const std::int64_t apart = elapsed_ns(span->second->end_ns, e.t_ns);
      if (apart <= span->second->res_ns || apart - span->second->res_ns <= e.res_ns) continue;
      const std::vector<std::string> names = e.strings("names");
      const std::string kernel = names.empty() ? "a module without kernels" : names.front();
      note("late/" + kernel, span->second->phase, "no code between the end of warming and ready",
           kernel,
           fmt::format("{} arrived on the device before ready, when {} had ended by its span",
                       kernel, span->second->phase),
           {span->second->event, i});
    }
  }

  // Where spans alone tell of phases this is for ready-honest to judge.
  void ready() {
    if (!ready_ || merged_) return;
    const trace::Event& said = view_.event(*ready_);
    for (const trace::SpanPhase& piece : spans_) {
      if (!view_.is_startup(piece.phase)) continue;
      if (elapsed_ns(said.t_ns, piece.end_ns) <= std::max(piece.res_ns, said.res_ns)) continue;
      note("ready/" + piece.phase, piece.phase, "ready once its spans have ended",
           "ready before " + piece.phase + " ended",
           fmt::format("ready was said while {} was going on by its span", piece.phase),
           {*ready_, piece.event});
    }
  }

  static constexpr std::size_t kMostNotes = 200;
  const View& view_;
  const std::vector<trace::SpanPhase> spans_;
  Phases by_log_, by_spans_;
  std::map<std::pair<std::pair<int, std::string>, std::string>, std::int64_t> open_;
  std::optional<std::size_t> ready_;
  const bool asked_;
  bool received_ = false, attached_ = false, merged_ = false;
  std::string reason_;
  std::size_t notes_seen_ = 0;
  Fold notes_;
};

class SpansAgree : public Contract {
 public:
  std::string_view name() const override { return kSpansAgree; }
  std::string_view promise() const override {
    return "the engine's spans tell of the same start as its log and the driver's probe do";
  }
  std::vector<std::string> needs() const override { return {}; }
  Result judge(const Context& context) const override { return Agreement(view_of(context)).run(); }
};

}  // namespace

const Contract& spans_agree_contract() {
  static const SpansAgree contract;
  return contract;
}

}  // namespace warmgate::contract
