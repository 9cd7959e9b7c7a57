// speculation-live: an engine that drafts counts what it drafts, and the counters agree.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "harness/contract/builtin.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kSpeculationLive = "speculation-live";

struct Counter {
  double value = 0;
  std::size_t event = 0;
};
using Counters = std::map<std::string, Counter, std::less<>>;

class SpeculationLive : public Contract {
 public:
  std::string_view name() const override { return kSpeculationLive; }
  std::string_view promise() const override { return "drafts are made and counted consistently"; }
  std::vector<std::string> needs() const override { return {}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    std::map<int, Counters> ranks;
    std::size_t served = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev == "request" && e.src != "harness" && e.flag("ok")) ++served;
      if (e.ev != "counter" || !has_number(e, "value")) continue;
      const auto name = text(e, "name");
      if (name == "drafts" || name == "draft_tokens" || name == "accepted_tokens")
        ranks[rank_of(e)][std::string(name)] = {e.real("value"), i};
    }
    if (ranks.empty()) return not_applicable(kSpeculationLive, "nothing counts drafts");
    if (served == 0) return not_observed(kSpeculationLive, {}, "no request was served");
    Result result = conclude(kSpeculationLive, {}, State::kKept, "");
    for (const auto& [rank, counters] : ranks) judge_rank(result, rank, counters, served);
    if (!result.findings.empty()) result.state = State::kBroken;
    return result;
  }

 private:
  static void judge_rank(Result& result, int rank, const Counters& counters, std::size_t served) {
    for (const auto& [name, counter] : counters) {
      if (std::isfinite(counter.value) && counter.value >= 0) continue;
      result.findings.push_back(
          finding(rank, name, "a count", fmt::format("{:g}", counter.value), {counter.event}));
      return;
    }
    ordered(result, rank, counters, "drafts", "draft_tokens");
    ordered(result, rank, counters, "accepted_tokens", "draft_tokens");
    const auto drafted = counters.find("draft_tokens"), drafts = counters.find("drafts");
    const Counter* made = drafts != counters.end()    ? &drafts->second
                          : drafted != counters.end() ? &drafted->second
                                                      : nullptr;
    // Some servers have the counters whether they draft or not, so only a gate turns this into a
    // failure.
    if (made != nullptr && made->value == 0)
      result.notes.push_back(finding(rank, "drafts", "> 0 where it is to draft",
                                     fmt::format("0 in {}", counted(served, "request")),
                                     {made->event}));
    const auto accepted = counters.find("accepted_tokens");
    // Random weights draft what nobody accepts.
    if (made != nullptr && made->value > 0 && accepted != counters.end() &&
        accepted->second.value == 0)
      result.notes.push_back(finding(rank, "accepted_tokens", "> 0 with real weights", "0",
                                     {made->event, accepted->second.event}));
  }

  static void ordered(Result& result, int rank, const Counters& counters, const char* less,
                      const char* more) {
    const auto a = counters.find(less), b = counters.find(more);
    if (a == counters.end() || b == counters.end() || a->second.value <= b->second.value) return;
    result.findings.push_back(
        finding(rank, fmt::format("{}/{}", less, more), fmt::format("{} ≤ {}", less, more),
                fmt::format("{:g} and {:g}", a->second.value, b->second.value),
                {a->second.event, b->second.event}));
  }

  static Finding finding(int rank, std::string key, std::string expected, std::string seen,
                         std::vector<std::size_t> events) {
    Finding f;
    f.contract = kSpeculationLive;
    f.phase = "serve";
    f.rank = rank;
    f.key = std::move(key);
    f.message = fmt::format("{}: {}, expected {}", f.key, seen, expected);
    f.expected = std::move(expected);
    f.seen = std::move(seen);
    f.events = std::move(events);
    return f;
  }
};

}  // namespace

const Contract& speculation_live_contract() {
  static const SpeculationLive contract;
  return contract;
}

}  // namespace warmgate::contract
