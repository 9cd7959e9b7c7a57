#include "harness/engine/checks/tally.h"

namespace warmgate::engine::checks {

bool failed(const Comparison& c) {
  return !(c.error <= c.limit) || c.mismatches != 0 || c.poisoned != 0;
}

namespace {

// What differs exactly weighs more than any error.
bool worse(const Comparison& a, const Comparison& b) {
  const bool a_exact = a.mismatches != 0 || a.poisoned != 0;
  const bool b_exact = b.mismatches != 0 || b.poisoned != 0;
  if (a_exact != b_exact) return a_exact;
  return !(a.error <= b.error);
}

}  // namespace

void Tally::add(const Comparison& c, std::int64_t step) {
  auto [it, is_new] = worst_.try_emplace(
      {std::string(c.tensor), std::string(c.layer.kind), std::string(c.layer.role)});
  Worst& all = it->second;
  if (is_new) {
    all.comparison = c;
    all.comparison.tensor = std::get<0>(it->first);
    all.step = step;
    all.count = 1;
  } else {
    Comparison& sum = all.comparison;
    if (worse(c, sum)) {
      sum.layer = c.layer;
      all.step = step;
      sum.message = c.message;
    }
    if (!(c.error <= sum.error)) sum.error = c.error;
    sum.exact = sum.exact || c.exact;
    sum.rows += c.rows;
    sum.mismatches += c.mismatches;
    sum.poisoned += c.poisoned;
    ++all.count;
  }
  if (all.failed || !failed(c)) return;
  all.failed = true;
  tell({c, step, 1, true}, false);
}

void Tally::tell(const Worst& worst, bool final) const {
  const Comparison& c = worst.comparison;
  trace::Line line("check");
  line.str("tensor", c.tensor).str("kind", "numerics").str("phase", recorder_.phase());
  line.num("step", worst.step).num("layer", c.layer.id).str("layer_kind", c.layer.kind);
  line.str("role", c.layer.role).num("rows", c.rows).num("count", worst.count);
  line.real("error", c.error).real("limit", c.limit).flag("exact", c.exact);
  line.num("mismatches", c.mismatches).num("poisoned", c.poisoned);
  if (!c.message.empty()) line.str("message", c.message);
  if (final) line.flag("final", true);
  recorder_.send(line);
}

void Tally::end_phase() {
  for (const auto& [key, worst] : worst_) tell(worst, true);
  worst_.clear();
}

}  // namespace warmgate::engine::checks
