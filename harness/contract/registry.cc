#include <exception>

#include "harness/contract/builtin.h"
#include "harness/contract/channels.h"
#include "harness/contract/view.h"

namespace warmgate::contract {

std::string_view to_string(State state) {
  switch (state) {
    case State::kKept:
      return "kept";
    case State::kBroken:
      return "broken";
    case State::kNotObserved:
      return "not_observed";
    case State::kNotApplicable:
      return "not_applicable";
  }
  return "not_observed";
}

const std::vector<const Contract*>& builtin_contracts() {
  static const std::vector<const Contract*> all = {
      &protocol_contract(),         &starts_contract(),
      &owned_resources_contract(),  &keys_valid_contract(),
      &keys_reachable_contract(),   &keys_covered_contract(),
      &signatures_match_contract(), &workspace_fits_contract(),
      &memory_covers_contract(),    &dummy_legal_contract(),
      &warmup_complete_contract(),  &ready_honest_contract(),
      &ranks_agree_contract(),      &nothing_left_behind_contract(),
      &numerics_contract(),         &stores_declared_contract(),
      &speculation_live_contract(), &answers_differ_contract(),
      &code_ready_contract(),       &memory_kept_contract(),
      &spans_agree_contract(),      &graph_stable_contract(),
      &cache_sound_contract()};
  return all;
}

const Contract* find_contract(std::string_view name) {
  for (const Contract* contract : builtin_contracts())
    if (contract->name() == name) return contract;
  return nullptr;
}

Result conclude(std::string_view name, std::vector<Finding> findings, State otherwise,
                std::string why) {
  Result result;
  result.contract = name;
  result.state = findings.empty() ? otherwise : State::kBroken;
  result.findings = std::move(findings);
  result.why = std::move(why);
  return result;
}

Result not_observed(std::string_view name, std::vector<std::string> missing, std::string why) {
  Result result;
  result.contract = name;
  result.state = State::kNotObserved;
  result.missing = std::move(missing);
  result.why = std::move(why);
  return result;
}

Result not_applicable(std::string_view name, std::string why) {
  Result result;
  result.contract = name;
  result.state = State::kNotApplicable;
  result.why = std::move(why);
  return result;
}

std::string why_not_observed(const Result& result) {
  std::string out = result.why.empty() ? "the trace does not show it" : result.why;
  for (std::size_t i = 0; i < result.missing.size(); ++i) {
    out += (i == 0 ? " (" : ", ") + result.missing[i];
  }
  if (!result.missing.empty()) out += ")";
  if (!result.shown_by.empty()) out += "; " + result.shown_by;
  return out;
}

namespace {

Result with_hint(Result result, const Context& context) {
  if (result.state == State::kNotObserved && !result.missing.empty()) {
    result.shown_by = shown_by(result.contract, view_of(context));
  }
  return result;
}

}  // namespace

Result judge(const Contract& contract, const Context& context) {
  const std::string name(contract.name());
  try {
    const View& view = view_of(context);
    std::vector<std::string> missing;
    for (const std::string& kind : contract.needs())
      if (!view.emits(kind)) missing.push_back(kind);
    if (!missing.empty()) {
      return with_hint(
          not_observed(name, std::move(missing), "no source would have sent these events"),
          context);
    }
    return with_hint(contract.judge(context), context);
  } catch (const std::exception& error) {
    return not_observed(name, {}, std::string("the judgement itself failed: ") + error.what());
  }
}

}  // namespace warmgate::contract
