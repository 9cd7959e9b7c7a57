#include "harness/verdict/compare/compare.h"

#include <fmt/format.h>

#include <optional>

#include "harness/contract/builtin.h"
#include "harness/trace/quantity.h"

namespace warmgate::verdict {
namespace {

using Set = std::set<std::string>;

std::optional<Set> set_of(const RunRecord& run, const std::string& name) {
  const auto it = run.sets.find(name);
  if (it == run.sets.end()) return std::nullopt;
  return Set(it->second.begin(), it->second.end());
}

std::optional<Set> set_of(const AcceptedVariant& accepted, const std::string& name) {
  const auto it = accepted.sets.find(name);
  if (it == accepted.sets.end()) return std::nullopt;
  return it->second;
}

template <typename Before>
contract::Result growth(const Before& before, const RunRecord& run, const std::string& than) {
  std::vector<contract::Finding> findings;
  std::vector<std::string> unseen;
  for (const std::string& name : growth_sets()) {
    const auto a = set_of(before, name), b = set_of(run, name);
    if (!a || !b) {
      unseen.push_back(name);
      continue;
    }
    for (const std::string& member : *b) {
      if (a->count(member) != 0) continue;
      contract::Finding f;
      f.contract = "set-growth";
      f.key = name + "/" + member;
      f.expected = fmt::format("nothing beyond the {} of {}", a->size(), than);
      f.seen = member;
      f.message = fmt::format("{} grew: {} is new against {}", name, member, than);
      findings.push_back(std::move(f));
    }
  }
  std::string why;
  if (!unseen.empty()) why = fmt::format("not observed on both sides: {}", fmt::join(unseen, ", "));
  if (unseen.size() == growth_sets().size()) return contract::not_observed("set-growth", {}, why);
  return contract::conclude("set-growth", std::move(findings), contract::State::kKept, why);
}

std::string side(const RunRecord& run, const char* fallback) {
  return run.variant.empty() ? fallback : run.variant;
}

}  // namespace

const std::vector<std::string>& growth_sets() {
  static const std::vector<std::string> names = {"compiles_after_ready", "skips", "kernels",
                                                 "warnings"};
  return names;
}

contract::Result capacity_equal(const RunRecord& a, const RunRecord& b,
                                const std::vector<std::string>& figures) {
  std::vector<contract::Finding> findings;
  std::vector<std::string> unseen;
  for (const std::string& name : figures) {
    const auto x = a.figures.find(name), y = b.figures.find(name);
    if (x == a.figures.end() || y == b.figures.end()) {
      unseen.push_back(name);
      continue;
    }
    if (x->second == y->second) continue;
    contract::Finding f;
    f.contract = "capacity-equal";
    f.key = name;
    const std::string left = trace::quantity_text(name, x->second),
                      right = trace::quantity_text(name, y->second);
    f.expected = fmt::format("{}, as {}", left, side(a, "A"));
    f.seen = right;
    f.message =
        fmt::format("{} of {} is {}, of {} {}", name, side(a, "A"), left, side(b, "B"), right);
    f.detail = {{"difference_bytes", y->second - x->second}};
    findings.push_back(std::move(f));
  }
  std::string why;
  if (!unseen.empty()) why = fmt::format("not reached by both sides: {}", fmt::join(unseen, ", "));
  if (unseen.size() == figures.size()) return contract::not_observed("capacity-equal", {}, why);
  return contract::conclude("capacity-equal", std::move(findings), contract::State::kKept, why);
}

contract::Result set_growth(const RunRecord& a, const RunRecord& b) {
  return growth(a, b, side(a, "A"));
}

contract::Result set_growth(const AcceptedVariant& accepted, const RunRecord& run) {
  return growth(accepted, run, "the accepted set");
}

}  // namespace warmgate::verdict
