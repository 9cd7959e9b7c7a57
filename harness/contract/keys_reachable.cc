// keys-reachable: what warmup compiles, the dispatcher can ask for. A key too many costs start-up
// time and may hide that the right one is missing; it breaks nothing, hence notes.
#include <fmt/format.h>

#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/key_use.h"

namespace warmgate::contract {
namespace {

constexpr const char* kKeysReachable = "keys-reachable";

class KeysReachable : public Contract {
 public:
  std::string_view name() const override { return kKeysReachable; }
  std::string_view promise() const override {
    return "every warmed key is one that the dispatcher can produce";
  }
  std::vector<std::string> needs() const override { return {"compile", "domain"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const KeyUse use = key_use(view);
    std::map<std::string, std::set<std::string>> domain;
    std::map<std::string, std::size_t> told;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev != "domain") continue;
      const std::string kernel(text(e, "kernel"));
      told.emplace(kernel, i);
      for (std::string& key : e.strings("keys")) domain[kernel].insert(std::move(key));
    }
    if (told.empty())
      return not_observed(kKeysReachable, {}, "no dispatcher told what it can produce");
    Result result = conclude(kKeysReachable, {});
    std::set<std::string> unknown;
    for (const auto& [key, warmed] : use.warmed) {
      const auto it = told.find(warmed.kernel);
      if (it == told.end()) {
        unknown.insert(warmed.kernel);
        continue;
      }
      if (domain[warmed.kernel].count(key) != 0) continue;
      Finding f;
      f.contract = kKeysReachable;
      f.phase = "warmup";
      f.key = key;
      f.rank = warmed.ranks.size() == 1 ? *warmed.ranks.begin() : -1;
      f.expected =
          fmt::format("one of the {} keys of its dispatcher", domain[warmed.kernel].size());
      f.seen = "no input of this configuration leads to it";
      f.message = fmt::format("warmup compiles {}, which serving can never ask for", key);
      f.events = warmed.events;
      f.events.push_back(it->second);
      result.notes.push_back(std::move(f));
    }
    if (!unknown.empty())
      result.why = fmt::format("no domain told for {}", fmt::join(unknown, ", "));
    return result;
  }
};

}  // namespace

const Contract& keys_reachable_contract() {
  static const KeysReachable contract;
  return contract;
}

}  // namespace warmgate::contract
