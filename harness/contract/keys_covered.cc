// keys-covered: a key launched in serve was made ready in warmup; nothing is compiled afterwards.
#include <fmt/format.h>

#include <algorithm>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/key_use.h"

namespace warmgate::contract {
namespace {

constexpr const char* kKeysCovered = "keys-covered";

int one_rank(const std::set<int>& ranks) { return ranks.size() == 1 ? *ranks.begin() : -1; }

// The ranks among `launched` on which no compile of the key ended well before.
std::set<int> uncovered(const std::set<int>& launched, const KeyUse::Warmed* warmed) {
  if (!warmed) return launched;
  std::set<int> out;
  std::set_difference(launched.begin(), launched.end(), warmed->ok_ranks.begin(),
                      warmed->ok_ranks.end(), std::inserter(out, out.end()));
  return out;
}

bool watched_by_plugin(const View& view) {
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.src == "python" && e.ev == "probe" && text(e, "status") == "attached") return true;
  }
  return false;
}

class KeysCovered : public Contract {
 public:
  std::string_view name() const override { return kKeysCovered; }
  std::string_view promise() const override {
    return "every key launched in serve was made ready in warmup, and nothing is compiled after "
           "ready";
  }
  std::vector<std::string> needs() const override { return {"compile"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const bool launches = view.emits("launch");
    // From outside, and by a plugin, only what is compiled too late can be seen, and that ready was
    // said.
    const bool outside = view.emits("http") || watched_by_plugin(view);
    if (!launches && !outside)
      return not_observed(kKeysCovered, {"launch"}, "no source would have sent these events");
    const KeyUse use = key_use(view);
    std::vector<Finding> findings;
    for (const auto& [key, launched] : use.launched) {
      const auto it = use.warmed.find(key);
      const KeyUse::Warmed* warmed = it == use.warmed.end() ? nullptr : &it->second;
      const std::set<int> ranks = uncovered(launched.ranks, warmed);
      const auto late = use.late.find(key);
      if (ranks.empty() && late == use.late.end()) continue;
      Finding f = base(key, "serve", ranks.empty() ? late->second.ranks : ranks);
      f.layer_kind = launched.layer_kind;
      f.role = launched.role;
      f.seen = !warmed             ? "launched, never warmed"
               : !warmed->compiled ? "launched; warmup asked for it and never came to compile it"
               : warmed->ok_ranks.empty() ? "launched, its compile in warmup failed"
               : ranks.empty()            ? "launched, compiled again"
                                          : "launched on ranks that did not warm it";
      if (late != use.late.end()) f.seen += "; compiled after ready";
      f.message = fmt::format("serving launches {}: {}", key, f.seen);
      f.events = launched.events;
      if (warmed)
        for (std::size_t i : warmed->events) add_proof(f, i);
      if (late != use.late.end())
        for (std::size_t i : late->second.events) add_proof(f, i);
      if (!launched.classes.empty()) f.detail["classes"] = launched.classes;
      findings.push_back(std::move(f));
    }
    for (const auto& [key, late] : use.late) {
      if (use.launched.count(key) != 0) continue;
      Finding f = base(key, late.phase, late.ranks);
      f.seen = "compiled after ready";
      f.message = fmt::format("{} was compiled after ready", key);
      f.events = late.events;
      findings.push_back(std::move(f));
    }
    if (findings.empty() && !nothing_served(view).empty())
      return not_observed(kKeysCovered, {}, nothing_served(view));
    std::string why = launches ? "" : "launches are not observed; judged by what was compiled late";
    if (!view.completed("serve"))
      why +=
          (why.empty() ? "" : "; ") + std::string("serving did not end; judged as far as it came");
    return conclude(kKeysCovered, std::move(findings), State::kKept, why);
  }

 private:
  static Finding base(const std::string& key, std::string phase, const std::set<int>& ranks) {
    Finding f;
    f.contract = kKeysCovered;
    f.phase = std::move(phase);
    f.key = key;
    f.rank = one_rank(ranks);
    f.expected = "made ready in warmup";
    if (ranks.size() > 1) f.detail["ranks"] = ranks;
    return f;
  }
};

}  // namespace

const Contract& keys_covered_contract() {
  static const KeysCovered contract;
  return contract;
}

}  // namespace warmgate::contract
