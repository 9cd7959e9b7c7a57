// dummy-legal: a dummy batch obeys every limit that a real batch obeys, and what it is filled with
// does not matter.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kDummyLegal = "dummy-legal";

struct Limits {
  std::int64_t tokens = -1, requests = -1, length = -1;  // -1: unknown
  bool known() const { return tokens >= 0 || requests >= 0 || length >= 0; }
};

// What the engine says of its rank may be tighter than what it was started with, never looser.
std::int64_t tighter(const trace::Event& e, std::string_view key, std::int64_t started) {
  const std::int64_t said = e.num(key, -1);
  if (said < 1) return started;
  return started < 0 ? said : std::min(said, started);
}

// What it was started with.
Limits started_with(const Context& context) {
  if (context.resolved == nullptr) return {};
  const auto& limits = context.resolved->limits;
  return {limits.max_num_batched_tokens, limits.max_num_seqs, limits.max_model_len};
}

struct Rule {
  const char *field, *key, *limit;  // of the step event; of the finding; as the limit is called
  std::int64_t Limits::*most;
  std::int64_t least;  // of the field, where the step has it
};
constexpr std::array<Rule, 4> kRules = {{
    {"rows", "rows", "max_num_batched_tokens", &Limits::tokens, 1},
    {"requests", "requests", "max_num_seqs", &Limits::requests, 1},
    {"longest", "length", "max_model_len", &Limits::length, 1},
    // A draft's input buffers are as long as the target's.
    {"draft_rows", "draft_rows", "max_num_batched_tokens", &Limits::tokens, 0},
}};

class DummyLegalJudge {
 public:
  explicit DummyLegalJudge(const Context& context)
      : view_(view_of(context)), fallback_(started_with(context)) {}

  Result run() {
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      if (e.ev == "limits") {
        Limits& limits = limits_[rank_of(e)];
        limits = {tighter(e, "max_num_batched_tokens", fallback_.tokens),
                  tighter(e, "max_num_seqs", fallback_.requests),
                  tighter(e, "max_model_len", fallback_.length)};
      } else if (e.ev == "step") {
        step(i);
      } else if (e.ev == "poisoned") {
        poisoned(i);
      } else if (e.ev == "deadline") {
        hung_ = true;
      } else if (e.ev == "process_end" && was_killed(e)) {
        ended_by_others_.insert(rank_of(e));
      }
    }
    for (const auto& [where, begun] : open_)
      if (hung_ || ended_by_others_.count(where.first) == 0) faulted(where.first, begun);
    std::vector<Finding> findings = fold_.take();
    if (findings.empty() && steps_ == 0)
      return not_observed(kDummyLegal, {}, "the run ended before any dummy step");
    if (findings.empty() && !judged_)
      return not_applicable(kDummyLegal, "no limit is known that a batch would have to obey");
    return conclude(kDummyLegal, std::move(findings), State::kKept, reach());
  }

 private:
  // Every batch that start-up makes is a stand-in for a real one, whatever it calls itself.
  void step(std::size_t i) {
    const trace::Event& e = view_.event(i);
    if (text(e, "kind") == "other" || e.flag("final")) return;
    if (text(e, "kind") != "dummy" && !view_.is_startup(view_.phase(i))) return;
    ++steps_;
    const auto own = limits_.find(rank_of(e));
    const Limits& limits = own != limits_.end() ? own->second : fallback_;
    if (!limits.known()) return;
    judged_ = true;
    for (std::size_t r = 0; r < kRules.size(); ++r) {
      const Rule& rule = kRules[r];
      const std::int64_t most = limits.*rule.most;
      if (!has_number(e, rule.field) || most < 0) continue;
      const std::int64_t value = e.num(rule.field);
      auto& [reached, limit] = reached_[r];
      reached = std::max(reached, value);
      limit = most;
      if (value >= rule.least && value <= most) continue;
      Finding f = base(rule.key, i);
      f.expected = fmt::format("{} to {} ({})", rule.least, most, rule.limit);
      f.seen = fmt::format("{} {} in a {} step", value, rule.field, text(e, "kind"));
      f.message = fmt::format("a {} step of {} has {} {}, a real one may have {} to {} ({})",
                              text(e, "kind"), view_.phase(i), value, rule.field, rule.least, most,
                              rule.limit);
      fold_.add(std::move(f), std::to_string(i));
    }
    if (e.num("requests") > e.num("rows") && has_number(e, "rows") && has_number(e, "requests")) {
      Finding f = base("empty_requests", i);
      f.expected = "at least one row a request";
      f.seen = fmt::format("{} rows over {} requests", e.num("rows"), e.num("requests"));
      f.message = fmt::format("a {} step of {} has {}", text(e, "kind"), view_.phase(i), f.seen);
      fold_.add(std::move(f), std::to_string(i));
    }
  }

  // SIGKILL and SIGTERM come from outside (the memory killer, a peer's end, us): what the step was
  // filled with is not why it did not come back, unless it hung before.
  static bool was_killed(const trace::Event& e) {
    return e.num("signal") == 9 || e.num("signal") == 15;
  }

  // `poisoned` twice a step: status begin, then end with what the same probe gave before and after.
  void poisoned(std::size_t i) {
    const trace::Event& e = view_.event(i);
    const std::pair<int, std::string> where{rank_of(e), std::string(text(e, "what"))};
    if (text(e, "status") == "begin") {
      open_[where] = i;
      return;
    }
    if (text(e, "status") != "end") return;  // of which nothing is known
    open_.erase(where);
    ++poisoned_;
    // Two probes that gave nothing have not shown that they agree.
    const nlohmann::json before = e.body.value("before"), after = e.body.value("after");
    if (!before.is_null() && before == after) return;
    Finding f = base("contents/" + where.second, i);
    f.expected = "the same result as before";
    f.seen = fmt::format("another one, with {} filled with {}", where.second, text(e, "value"));
    f.message =
        fmt::format("a dummy step whose {} were {} changed what the engine gives afterwards",
                    where.second, text(e, "value"));
    f.detail = {{"before", before}, {"after", after}};
    fold_.add(std::move(f), where.second);
  }

  void faulted(int rank, std::size_t begun) {
    const trace::Event& e = view_.event(begun);
    Finding f = base(fmt::format("contents/{}", text(e, "what")), begun);
    f.rank = rank;
    f.expected = "a dummy step that ends, whatever it is filled with";
    f.seen =
        fmt::format("it never ended, with {} filled with {}", text(e, "what"), text(e, "value"));
    f.message = fmt::format("a dummy step whose {} were {} did not come back", text(e, "what"),
                            text(e, "value"));
    fold_.add(std::move(f), std::string(text(e, "what")));
  }

  Finding base(std::string key, std::size_t i) const {
    Finding f;
    f.contract = kDummyLegal;
    f.key = std::move(key);
    f.phase = view_.phase(i);
    f.rank = rank_of(view_.event(i));
    f.events = {i};
    return f;
  }

  // How near to the limits start-up came: a boundary that nothing reached was not tried.
  std::string reach() const {
    std::string out;
    for (std::size_t r = 0; r < 3; ++r) {
      const auto it = reached_.find(r);
      if (it == reached_.end()) continue;
      out += fmt::format("{}{} of {} {}", out.empty() ? "reached " : ", ", it->second.first,
                         it->second.second, kRules[r].limit);
    }
    if (poisoned_ > 0)
      out += fmt::format("{}{} with poisoned contents", out.empty() ? "" : "; ",
                         counted(poisoned_, "step"));
    return out;
  }

  const View& view_;
  Limits fallback_;
  std::map<int, Limits> limits_;
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> reached_;  // rule → value, limit
  std::map<std::pair<int, std::string>, std::size_t> open_;
  std::set<int> ended_by_others_;  // ranks
  std::size_t steps_ = 0, poisoned_ = 0;
  bool judged_ = false, hung_ = false;
  Fold fold_;
};

class DummyLegal : public Contract {
 public:
  std::string_view name() const override { return kDummyLegal; }
  std::string_view promise() const override {
    return "batches that start-up makes obey the limits of real ones, and their contents do not "
           "matter";
  }
  std::vector<std::string> needs() const override { return {"step"}; }
  Result judge(const Context& context) const override { return DummyLegalJudge(context).run(); }
};

}  // namespace

const Contract& dummy_legal_contract() {
  static const DummyLegal contract;
  return contract;
}

}  // namespace warmgate::contract
