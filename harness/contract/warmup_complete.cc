// warmup-complete: what warmup was asked to do it did, each skip was declared, and every stage that
// serving reaches was reached before ready.
#include <fmt/format.h>

#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kWarmupComplete = "warmup-complete";

struct Stage {
  bool requested = false, done = false, failed = false, skipped = false, declared = false;
  std::string reason, phase;
  std::vector<std::size_t> events;
};

class WarmupCompleteJudge {
 public:
  explicit WarmupCompleteJudge(const Context& context) : view_(view_of(context)) {}

  Result run() {
    const auto ended = ended_ranks();
    stages(ended);
    const bool launches = view_.emits("launch");
    if (launches) reach();
    std::vector<Finding> findings = fold_.take();
    if (findings.empty() && ended.empty())
      return not_observed(kWarmupComplete, {}, "the run ended before warmup did");
    std::string why;
    if (!launches)
      why = "which stages serving reaches is not observed (no launch events)";
    else if (!view_.reached("serve"))
      why = "the run ended before serving; only the requested stages were judged";
    return conclude(kWarmupComplete, std::move(findings), State::kKept, why);
  }

 private:
  // Where warmup was cut off, what it did not do any more has another name: `starts`.
  std::set<int> ended_ranks() const {
    std::set<int> out;
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      if (e.ev == "phase_end" && text(e, "phase") == "warmup" && text(e, "status") == "ok")
        out.insert(rank_of(e));
    }
    return out;
  }

  void stages(const std::set<int>& ended) {
    std::map<std::pair<std::string, int>, Stage> all;
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      if (e.ev != "stage" && e.ev != "skip") continue;
      const std::string_view name = e.ev == "stage" ? text(e, "stage") : text(e, "step");
      Stage& stage = all[{std::string(name), rank_of(e)}];
      stage.events.push_back(i);
      stage.phase = view_.phase(i);
      if (e.ev == "skip") {
        // One undeclared skip is enough, even among declared ones.
        stage.declared = e.flag("declared") && (!stage.skipped || stage.declared);
        stage.skipped = true;
        if (stage.reason.empty()) stage.reason = text(e, "reason");
        continue;
      }
      const std::string_view status = text(e, "status");
      stage.requested |= status == "requested";
      stage.done |= status == "done";
      stage.failed |= status == "failed";
    }
    for (const auto& [where, stage] : all) {
      const auto& [name, rank] = where;
      const bool undeclared = stage.skipped && !stage.declared;
      const bool excused = stage.skipped && stage.declared;
      const bool missing = stage.requested && !stage.done && !excused && ended.count(rank) != 0;
      if (!undeclared && !stage.failed && !missing) continue;
      Finding f = base(name, stage.phase.empty() ? "warmup" : stage.phase, rank);
      f.expected = "done, or a declared skip";
      f.seen = undeclared     ? "skipped: " + stage.reason
               : stage.failed ? "failed"
                              : "requested, never done";
      f.message = fmt::format("warmup step '{}' was {}", name, f.seen);
      for (std::size_t i : stage.events) add_proof(f, i);
      fold_.add(std::move(f), name);
    }
  }

  void reach() {
    struct Reached {
      std::set<int> early, serve;
      std::size_t event = 0;
      int layer = -1;
      std::string role;
    };
    std::map<std::pair<std::string, std::string>, Reached> all;  // layer kind, kernel
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      if (e.ev != "launch") continue;
      Reached& reached = all[{std::string(text(e, "layer_kind")), std::string(text(e, "kernel"))}];
      if (view_.is_startup(view_.phase(i))) {
        reached.early.insert(rank_of(e));
      } else if (view_.phase(i) == "serve") {
        if (reached.serve.empty()) {
          reached.event = i;
          reached.layer = layer_of(e);
          reached.role = text(e, "role");
        }
        reached.serve.insert(rank_of(e));
      }
    }
    for (const auto& [where, reached] : all) {
      const auto& [kind, kernel] = where;
      for (int rank : reached.serve) {
        if (reached.early.count(rank) != 0) continue;
        Finding f =
            base(fmt::format("{}/{}", kind.empty() ? "engine" : kind, kernel), "serve", rank);
        f.layer = reached.layer;
        f.layer_kind = kind;
        f.role = reached.role;
        f.expected = "reached before ready";
        f.seen = "first reached in serve";
        f.message = fmt::format("serving runs {} on {}, which no phase before ready ever ran",
                                kernel, kind.empty() ? "the engine" : kind + " layers");
        f.events = {reached.event};
        fold_.add(std::move(f), kernel);
      }
    }
  }

  static Finding base(std::string key, std::string phase, int rank) {
    Finding f;
    f.contract = kWarmupComplete;
    f.key = std::move(key);
    f.phase = std::move(phase);
    f.rank = rank;
    return f;
  }

  const View& view_;
  Fold fold_;
};

class WarmupComplete : public Contract {
 public:
  std::string_view name() const override { return kWarmupComplete; }
  std::string_view promise() const override {
    return "every requested warmup step was done or its skip declared, and stages that serving "
           "reaches were reached before ready";
  }
  std::vector<std::string> needs() const override { return {"stage", "skip"}; }
  Result judge(const Context& context) const override { return WarmupCompleteJudge(context).run(); }
};

}  // namespace

const Contract& warmup_complete_contract() {
  static const WarmupComplete contract;
  return contract;
}

}  // namespace warmgate::contract
