// numerics: what ran agrees with an independent computation of the same step. The engine compares
// while it runs and sends `check` events of kind numerics; here they are judged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/numeric_checks.h"

namespace warmgate::contract {

std::vector<NumericCheck> numeric_checks(const View& view) {
  std::vector<NumericCheck> out;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev != "check" || text(e, "kind") != "numerics") continue;
    NumericCheck c;
    c.event = i;
    c.rank = rank_of(e);
    c.layer = layer_of(e);
    c.tensor = text(e, "tensor");
    c.layer_kind = text(e, "layer_kind");
    c.role = text(e, "role");
    c.phase = view.phase(i);
    c.exact = e.flag("exact");
    c.count = std::max<std::int64_t>(1, e.num("count", 1));
    // A check may ask for more than everybody does, never for less.
    c.limit = std::min(kNumericLimit, e.real("limit", kNumericLimit));
    if (!(c.limit >= 0)) c.limit = 0;
    // NaN and infinity have no spelling in JSON: an error that is no number is one of them. An
    // exact check need not have any.
    c.error = e.real("error", c.exact ? 0 : std::nan(""));
    c.mismatches = claimed_faults(e, "mismatches");
    c.poisoned = claimed_faults(e, "poisoned");
    out.push_back(std::move(c));
  }
  return out;
}

namespace {

// A worker may claim any number; the smallest integer has no positive counterpart.
std::size_t magnitude(std::int64_t count) {
  const auto bits = static_cast<std::uint64_t>(count);
  return count < 0 ? std::uint64_t{0} - bits : bits;
}

constexpr const char* kNumerics = "numerics";

Finding finding(const NumericCheck& c, const char* what, std::string expected, std::string seen) {
  Finding f;
  f.contract = kNumerics;
  f.phase = c.phase;
  f.layer = c.layer;
  f.layer_kind = c.layer_kind;
  f.role = c.role;
  f.rank = c.rank;
  f.key = fmt::format("{}/{}/{}", c.layer_kind.empty() ? "engine" : c.layer_kind, c.tensor, what);
  f.expected = std::move(expected);
  f.seen = std::move(seen);
  f.message = fmt::format("{} of {}: {}, {} expected", c.tensor,
                          layer_text(c.layer, c.layer_kind, c.role), f.seen, f.expected);
  f.events = {c.event};
  return f;
}

class Numerics : public Contract {
 public:
  std::string_view name() const override { return kNumerics; }
  std::string_view promise() const override {
    return "row errors against an independent computation are at most 1/128, integers and layouts "
           "are exact, poison is gone";
  }
  std::vector<std::string> needs() const override { return {"check"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const auto checks = numeric_checks(view);
    if (checks.empty())
      return not_observed(kNumerics, {},
                          "nothing that this engine ran was compared with a reference");
    // One finding a tensor, kind and phase, with the worst of it: the error is part of its text.
    std::map<std::tuple<std::string, std::string, std::string, std::string, int>, Worst> all;
    std::int64_t compared = 0;
    for (const NumericCheck& c : checks) {
      if (__builtin_add_overflow(compared, c.count, &compared))
        compared = std::numeric_limits<std::int64_t>::max();
      Worst& worst = all[{c.phase, c.tensor, c.layer_kind, c.role, c.rank}];
      if (!(c.error >= 0 && c.error <= c.limit)) worst.raise(worst.error, c, c.error);
      if (c.mismatches != 0)
        worst.raise(worst.mismatches, c, std::abs(static_cast<double>(c.mismatches)));
      if (c.poisoned != 0)
        worst.raise(worst.poisoned, c, std::abs(static_cast<double>(c.poisoned)));
    }
    Fold fold;
    for (const auto& [where, worst] : all) {
      if (const NumericCheck* c = worst.error.check) {
        fold.add(finding(*c, "error", fmt::format("at most {:.6f}", c->limit),
                         std::isfinite(c->error) ? fmt::format("a row error of {:.6f}", c->error)
                                                 : std::string("a row error that is no number")),
                 where_text(*c));
      }
      if (const NumericCheck* c = worst.mismatches.check)
        fold.add(finding(*c, "exact", "no element that differs",
                         counted(magnitude(c->mismatches), "element") + " that differ"),
                 where_text(*c));
      if (const NumericCheck* c = worst.poisoned.check)
        fold.add(finding(*c, "poison", "no poison left",
                         counted(magnitude(c->poisoned), "element") + " still poisoned"),
                 where_text(*c));
    }
    return conclude(kNumerics, fold.take(), State::kKept, measured(checks, compared));
  }

 private:
  // "812 checks; worst: wo_b 0.0021, attention 0.0015, query 0.0012"
  static std::string measured(const std::vector<NumericCheck>& checks, std::int64_t compared) {
    std::map<std::string, double> worst;
    for (const NumericCheck& c : checks)
      if (std::isfinite(c.error)) worst[c.tensor] = std::max(worst[c.tensor], c.error);
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [tensor, error] : worst)
      if (error > 0) order.emplace_back(error, tensor);
    std::sort(order.rbegin(), order.rend());
    std::string out = fmt::format("{} checks", compared);
    for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
      out +=
          fmt::format("{}{} {:.4f}", i == 0 ? "; worst: " : ", ", order[i].second, order[i].first);
    return out;
  }
  struct Worst {
    struct Of {
      const NumericCheck* check = nullptr;
      double value = 0;
    };
    Of error, mismatches, poisoned;
    // NaN is worse than any number.
    static void raise(Of& of, const NumericCheck& check, double value) {
      if (of.check != nullptr && (std::isnan(of.value) || value <= of.value)) return;
      of = {&check, value};
    }
  };
  static std::string where_text(const NumericCheck& c) {
    return fmt::format("{}/{}", c.layer, c.rank);
  }
};

}  // namespace

const Contract& numerics_contract() {
  static const Numerics contract;
  return contract;
}

}  // namespace warmgate::contract
