// workspace-fits: what serving asks of the shared workspace, start-up reserved, for each layer kind
// and consumer alone. A larger reservation of another kind only masks a missing one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kName = "workspace-fits";

struct Need {
  std::int64_t reserved = -1, asked = -1;  // bytes; -1: nothing
  std::size_t reserved_at = 0, asked_at = 0;
  int layer = -1;
  std::string role;
  bool grew = false;
  std::size_t grew_at = 0;
  std::int64_t beyond = -1, capacity = 0;  // asked of a locked workspace beyond its capacity
  std::size_t beyond_at = 0;
  std::string phase;
};
using Needs = std::map<std::tuple<std::string, std::string, int>, Need>;  // kind, consumer, rank

Needs collect(const View& view) {
  Needs out;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev != "workspace") continue;
    const std::string_view phase = view.phase(i);
    Need& need =
        out[{std::string(text(e, "layer_kind")), std::string(text(e, "consumer")), rank_of(e)}];
    const std::int64_t requested = e.num("requested"), capacity = e.num("capacity");
    if (requested < 0) continue;
    const bool serving = view.is_serving(phase);
    if (!serving && requested > need.reserved) {
      need.reserved = requested;
      need.reserved_at = i;
    }
    if (serving && requested > need.asked) {
      need.asked = requested;
      need.asked_at = i;
      need.layer = layer_of(e);
      need.role = text(e, "role");
    }
    if (e.flag("grew") && (serving || e.flag("locked"))) {
      need.grew = true;
      need.grew_at = i;
      need.phase = phase;
    }
    if (e.flag("locked") && requested > capacity) {
      need.beyond = std::max(need.beyond, requested);
      need.capacity = capacity;
      need.beyond_at = i;
      need.phase = phase;
      if (need.layer < 0) need.layer = layer_of(e);
    }
  }
  return out;
}

class WorkspaceFits : public Contract {
 public:
  std::string_view name() const override { return kName; }
  std::string_view promise() const override {
    return "for each layer kind alone, serving asks no more of the workspace than start-up "
           "reserved; it does not grow after ready or when locked";
  }
  std::vector<std::string> needs() const override { return {"workspace"}; }

  Result judge(const Context& context) const override {
    const View view(context.trace);
    const Needs needs = collect(view);
    Fold fold;
    for (const auto& [where, need] : needs) {
      const auto& [kind, consumer, rank] = where;
      const bool short_ = need.asked > std::max<std::int64_t>(0, need.reserved);
      if (!short_ && !need.grew && need.beyond < 0) continue;
      Finding f;
      f.contract = kName;
      f.phase = short_ ? "serve" : need.phase;
      f.layer = need.layer;
      f.layer_kind = kind;
      f.role = need.role;
      f.rank = rank;
      f.key = fmt::format("workspace/{}/{}", kind.empty() ? "engine" : kind,
                          consumer.empty() ? "any" : consumer);
      const std::string who = kind.empty() ? std::string("the engine") : kind + " layers";
      if (short_) {
        f.expected = fmt::format("at most {} bytes, as {} reserved before ready",
                                 std::max<std::int64_t>(0, need.reserved), who);
        f.seen = fmt::format("{} bytes asked in serve", need.asked);
        f.events.push_back(need.asked_at);
        if (need.reserved >= 0) f.events.push_back(need.reserved_at);
      } else {
        f.expected = "no growth after ready or when locked";
        f.seen = need.grew ? "the workspace grew and its base moved"
                           : fmt::format("{} bytes asked of a locked workspace of {}", need.beyond,
                                         need.capacity);
      }
      if (need.grew) f.events.push_back(need.grew_at);
      if (need.beyond >= 0) f.events.push_back(need.beyond_at);
      f.message =
          fmt::format("{}{}{}: {}; {}{}", who, consumer.empty() ? "" : ", ", consumer, f.expected,
                      f.seen, short_ && need.grew ? "; the workspace grew" : "");
      f.detail = {{"reserved_bytes", std::max<std::int64_t>(0, need.reserved)},
                  {"asked_bytes", std::max<std::int64_t>(0, need.asked)},
                  {"grew", need.grew}};
      fold.add(std::move(f), kind + consumer);
    }
    std::vector<Finding> findings = fold.take();
    if (findings.empty() && !view.reached("serve"))
      return not_observed(kName, {}, "the run ended before serving");
    return conclude(kName, std::move(findings));
  }
};

}  // namespace

const Contract& workspace_fits_contract() {
  static const WorkspaceFits contract;
  return contract;
}

}  // namespace warmgate::contract
