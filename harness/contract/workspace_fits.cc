// workspace-fits: what serving asks of the shared workspace, start-up reserved, for each layer kind
// alone. A larger reservation of another kind only masks a missing one; that of another consumer of
// the same kind (the indexer's, which its top-k lives on) always goes with it, and is noted.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kWorkspaceFits = "workspace-fits";

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

// The most that a kind reserved on a rank, and which consumer did.
struct Reserved {
  std::int64_t bytes = 0;
  std::string consumer;
  std::size_t at = 0;
};
std::map<std::pair<std::string, int>, Reserved> by_kind(const Needs& needs) {
  std::map<std::pair<std::string, int>, Reserved> out;
  for (const auto& [where, need] : needs) {
    const auto& [kind, consumer, rank] = where;
    Reserved& most = out[{kind, rank}];
    if (need.reserved > most.bytes) most = {need.reserved, consumer, need.reserved_at};
  }
  return out;
}

Needs needs_of(const View& view) {
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
  std::string_view name() const override { return kWorkspaceFits; }
  std::string_view promise() const override {
    return "for each layer kind alone, serving asks no more of the workspace than start-up "
           "reserved; it does not grow after ready or when locked";
  }
  std::vector<std::string> needs() const override { return {"workspace"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const Needs needs = needs_of(view);
    const auto kinds = by_kind(needs);
    Fold broken, noted;
    for (const auto& [where, need] : needs) {
      const auto& [kind, consumer, rank] = where;
      const Reserved& reserved = kinds.at({kind, rank});
      const bool is_short = need.asked > reserved.bytes;
      if (is_short || need.grew || need.beyond >= 0) {
        broken.add(finding(where, need, reserved, is_short), kind + consumer);
      } else if (need.asked > std::max<std::int64_t>(0, need.reserved)) {
        noted.add(note(where, need, reserved), kind + consumer);
      }
    }
    std::vector<Finding> findings = broken.take();
    if (findings.empty() && !nothing_served(view).empty())
      return not_observed(kWorkspaceFits, {}, nothing_served(view));
    Result result = conclude(kWorkspaceFits, std::move(findings));
    result.notes = noted.take();
    return result;
  }

 private:
  static std::string who(const std::string& kind) {
    return kind.empty() ? std::string("the engine") : kind + " layers";
  }

  static Finding about(const Needs::key_type& where, const Need& need) {
    const auto& [kind, consumer, rank] = where;
    Finding f;
    f.contract = kWorkspaceFits;
    f.phase = "serve";
    f.layer = need.layer;
    f.layer_kind = kind;
    f.role = need.role;
    f.rank = rank;
    f.key = fmt::format("workspace/{}/{}", kind.empty() ? "engine" : kind,
                        consumer.empty() ? "any" : consumer);
    return f;
  }

  static Finding finding(const Needs::key_type& where, const Need& need, const Reserved& reserved,
                         bool is_short) {
    const auto& [kind, consumer, rank] = where;
    Finding f = about(where, need);
    if (is_short) {
      f.expected =
          fmt::format("at most {} bytes, as {} reserved before ready", reserved.bytes, who(kind));
      f.seen = fmt::format("{} bytes asked in serve", need.asked);
      f.events.push_back(need.asked_at);
      if (reserved.bytes > 0) f.events.push_back(reserved.at);
    } else {
      f.phase = need.phase;
      f.expected = "no growth after ready or when locked";
      f.seen = need.grew ? "the workspace grew and its base moved"
                         : fmt::format("{} bytes asked of a locked workspace of {}", need.beyond,
                                       need.capacity);
    }
    if (need.grew) f.events.push_back(need.grew_at);
    if (need.beyond >= 0) f.events.push_back(need.beyond_at);
    f.message =
        fmt::format("{}{}{}: {}; {}{}", who(kind), consumer.empty() ? "" : ", ", consumer,
                    f.expected, f.seen, is_short && need.grew ? "; the workspace grew" : "");
    f.detail = {{"reserved_bytes", reserved.bytes},
                {"asked_bytes", std::max<std::int64_t>(0, need.asked)},
                {"grew", need.grew}};
    return f;
  }

  static Finding note(const Needs::key_type& where, const Need& need, const Reserved& reserved) {
    const auto& [kind, consumer, rank] = where;
    Finding f = about(where, need);
    const std::string other = reserved.consumer.empty() ? "another consumer" : reserved.consumer;
    f.expected =
        fmt::format("at most {} bytes, as {} reserved before ready",
                    std::max<std::int64_t>(0, need.reserved), consumer.empty() ? "it" : consumer);
    f.seen = fmt::format("{} bytes asked in serve, within the {} that {} reserved", need.asked,
                         reserved.bytes, other);
    f.message = fmt::format("{}, {}: {}", who(kind), consumer.empty() ? "any" : consumer, f.seen);
    f.events = {need.asked_at, reserved.at};
    f.detail = {{"reserved_bytes", std::max<std::int64_t>(0, need.reserved)},
                {"asked_bytes", need.asked},
                {"kind_reserved_bytes", reserved.bytes}};
    return f;
  }
};

}  // namespace

const Contract& workspace_fits_contract() {
  static const WorkspaceFits contract;
  return contract;
}

}  // namespace warmgate::contract
