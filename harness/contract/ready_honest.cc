// ready-honest: ready is said when start-up is over, not before; what is asked then is served, and
// the second request is as good as the third.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/served_at_ready.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kReadyHonest = "ready-honest";

struct Span {
  std::size_t begin = 0, end = 0;
  bool ended = false;
};

class ReadyHonestJudge {
 public:
  explicit ReadyHonestJudge(const Context& context)
      : view_(view_of(context)), unnamed_(context.trace.world <= 1 ? 0 : -1) {}

  Result run() {
    collect();
    if (ready_.empty())
      return not_observed(kReadyHonest, {}, "the run ended before anything was ready");
    for (const auto& [where, span] : phases_) judge_phase(where.first, where.second, span);
    for (std::size_t i = 0; i < view_.size(); ++i) judge_work(i);
    std::vector<Finding> findings = fold_.take();
    for (Finding& finding : served_at_ready(view_)) findings.push_back(std::move(finding));
    return conclude(
        kReadyHonest, std::move(findings), State::kKept,
        phases_.empty() ? "no start-up phase was seen; only the order of what followed" : "");
  }

 private:
  void collect() {
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      const int rank = rank_of(e, unnamed_);
      if (e.ev == "ready") {
        if (!says_ready(e)) continue;
        ready_.emplace(rank, i);
        first_ready_ = ready_.size() == 1 ? i : first_ready_;
      } else if (e.ev == "phase_begin" && view_.is_startup(text(e, "phase"))) {
        // A front end's log stays in bootstrap until it says that it is ready, whatever is done.
        if (e.src == "log" && text(e, "phase") == "bootstrap") continue;
        phases_[{std::string(text(e, "phase")), rank}] = {i, 0, false};
      } else if (e.ev == "phase_end") {
        const auto it = phases_.find({std::string(text(e, "phase")), rank});
        if (it != phases_.end() && e.flag("inferred")) {
          phases_.erase(it);  // nobody saw when it ended
        } else if (it != phases_.end()) {
          it->second.end = i;
          it->second.ended = true;
        }
      }
    }
  }

  // A rank that says ready itself speaks for itself only; one that does not is spoken for by the
  // first that does (a front end speaks for all).
  std::size_t ready_for(int rank) const {
    const auto it = ready_.find(rank);
    return it == ready_.end() ? first_ready_ : it->second;
  }

  // Of the rank that said it last.
  std::size_t last_ready() const {
    std::size_t out = first_ready_;
    for (const auto& [rank, i] : ready_) {
      if (view_.event(i).t_ns > view_.event(out).t_ns) out = i;
    }
    return out;
  }

  // Two times are ordered only if they differ by more than both resolutions; equal ones fall back
  // to the order of arrival.
  bool before(std::size_t a, std::size_t b) const {
    const trace::Event& x = view_.event(a);
    const trace::Event& y = view_.event(b);
    const std::int64_t blur = std::max(x.res_ns, y.res_ns);
    if (blur > 0) return y.t_ns > x.t_ns && elapsed_ns(x.t_ns, y.t_ns) > blur;
    return x.t_ns != y.t_ns ? x.t_ns < y.t_ns : a < b;
  }

  void judge_phase(const std::string& phase, int rank, const Span& span) {
    const std::size_t ready = ready_for(rank);
    if (span.ended && !before(ready, span.end)) return;
    Finding f = base(phase, phase, rank);
    f.expected = fmt::format("ready after {} has ended on every rank", phase);
    f.seen = before(ready, span.begin) ? fmt::format("ready before {} began", phase)
             : span.ended              ? fmt::format("ready before {} ended", phase)
                                       : fmt::format("ready, and {} never ended", phase);
    f.message = fmt::format("ready was said too early: {}", f.seen);
    f.events = {ready, span.begin};
    if (span.ended) f.events.push_back(span.end);
    fold_.add(std::move(f), std::to_string(rank));
  }

  // Work that belongs to warmup, done after ready.
  void judge_work(std::size_t i) {
    const trace::Event& e = view_.event(i);
    const int rank = rank_of(e, unnamed_);
    std::string what;
    if (e.ev == "stage") what = "stage " + std::string(text(e, "stage"));
    if (e.ev == "capture") what = "capture";
    if (e.ev == "step" && text(e, "kind") == "dummy") what = "dummy step";
    // What an unfinished phase still does is that phase's finding already.
    // A probe knows no rank: its process may be one that is ready later than the first.
    const bool whose = e.rank || (e.src != "probe" && e.src != "python");
    const std::size_t ready = whose ? ready_for(rank) : last_ready();
    if (what.empty() || !before(ready, i) || view_.is_startup(view_.phase(i))) return;
    Finding f = base(what, std::string(view_.phase(i)), rank);
    f.expected = "nothing of warmup after ready";
    f.seen = what;
    f.message = fmt::format("after ready the engine still did warmup work: {}", what);
    f.events = {ready, i};
    fold_.add(std::move(f), std::to_string(i));
  }

  static Finding base(std::string key, std::string phase, int rank) {
    Finding f;
    f.contract = kReadyHonest;
    f.key = std::move(key);
    f.phase = std::move(phase);
    f.rank = rank;
    return f;
  }

  const View& view_;
  int unnamed_;
  std::map<int, std::size_t> ready_;  // rank → its first ready
  std::size_t first_ready_ = 0;
  std::map<std::pair<std::string, int>, Span> phases_;
  Fold fold_;
};

class ReadyHonest : public Contract {
 public:
  std::string_view name() const override { return kReadyHonest; }
  std::string_view promise() const override {
    return "ready is not said before start-up is done on every rank; no warmup work follows it, "
           "what "
           "is asked then is served, and the second request is as good as the third";
  }
  std::vector<std::string> needs() const override { return {"ready", "phase_begin", "phase_end"}; }
  Result judge(const Context& context) const override { return ReadyHonestJudge(context).run(); }
};

}  // namespace

const Contract& ready_honest_contract() {
  static const ReadyHonest contract;
  return contract;
}

}  // namespace warmgate::contract
