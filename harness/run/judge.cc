#include "harness/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "harness/contract/external.h"
#include "harness/contract/view.h"
#include "harness/run/reproduce.h"
#include "harness/trace/span_phases.h"
#include "harness/trace/wire.h"
#include "harness/verdict/allow.h"
#include "harness/verdict/compare/compare.h"
#include "harness/verdict/expectation.h"
#include "harness/verdict/figures.h"
#include "harness/verdict/fingerprint.h"
#include "harness/verdict/outcome.h"

namespace warmgate::run {

using verdict::RunRecord;
using verdict::Verdict;

namespace {

template <typename T>
void refuse_twins(const std::vector<T>& things, const char* what,
                  std::vector<scenario::Problem>& problems) {
  std::set<std::string> seen;
  for (const T& thing : things) {
    if (seen.insert(thing.name).second) continue;
    problems.push_back({"", 0, 0, thing.name, fmt::format("two {} have this name", what)});
  }
}

const scenario::Resolved* resolved_of(const scenario::Variant& variant) {
  const bool native = variant.target.kind == scenario::Target::Kind::kNative;
  return native && !variant.ranks.empty() ? &variant.ranks.front() : nullptr;
}

verdict::GateContext gate_context(const scenario::Scenario& scenario,
                                  const verdict::Accepted& accepted, const std::string& variant,
                                  const std::string& today) {
  verdict::GateContext out;
  out.rules = &scenario.gate;
  out.accepted = accepted.find(variant);
  out.allow = &scenario.allow;
  out.today = today;
  return out;
}

void judge_contracts(const JudgeContext& context, const contract::Context& over, RunRecord& run) {
  for (const contract::Contract* contract : contract::builtin_contracts()) {
    run.contracts.push_back(contract::judge(*contract, over));
  }
  for (const contract::ExternalContract& contract : context.extras.contracts) {
    run.contracts.push_back(contract::judge_external(contract, over));
  }
}

// What was started, for the record of a run; the whole list of packages stands once, at the
// variant.
nlohmann::json brief_json(const verdict::ArtefactIdentity& identity) {
  nlohmann::json out = verdict::to_json(identity);
  out["packages"] = identity.packages ? nlohmann::json(identity.packages->size()) : nullptr;
  return out;
}

// Two variants are comparable in capacity where nothing of what sizes the KV slab differs on
// purpose: then a difference comes from a behaviour.
bool same_capacity_inputs(const scenario::Variant& a, const scenario::Variant& b) {
  const scenario::Resolved *x = resolved_of(a), *y = resolved_of(b);
  if (x == nullptr || y == nullptr) return false;
  const auto inputs = [](const scenario::Resolved& resolved) {
    nlohmann::json all = scenario::to_json(resolved);
    nlohmann::json out;
    for (const char* key : {"model", "limits", "parallel", "drafter", "device"}) {
      out[key] = all.at(key);
    }
    return out;
  };
  return inputs(*x) == inputs(*y);
}

const RunRecord* first_sample(const VariantResult& variant) {
  for (const RunRecord& run : variant.runs) {
    if (verdict::is_sample(run)) return &run;
  }
  return nullptr;
}

void compare_capacity(ScenarioResult& result) {
  const VariantResult* base = nullptr;
  for (const VariantResult& variant : result.variants) {
    const RunRecord* run = first_sample(variant);
    if (run == nullptr || run->figures.count("kv_bytes") == 0) continue;
    if (base == nullptr) {
      base = &variant;
      continue;
    }
    if (!same_capacity_inputs(base->variant, variant.variant)) continue;
    contract::Result compared = verdict::capacity_equal(*first_sample(*base), *run);
    compared.why = fmt::format("{} against {}{}{}", variant.variant.name, base->variant.name,
                               compared.why.empty() ? "" : "; ", compared.why);
    result.comparisons.push_back(std::move(compared));
  }
}

void compare_growth(ScenarioResult& result, const verdict::Accepted& accepted) {
  for (const VariantResult& variant : result.variants) {
    const verdict::AcceptedVariant* known = accepted.find(variant.variant.name);
    const RunRecord* run = first_sample(variant);
    if (known == nullptr || run == nullptr) continue;
    contract::Result grown = verdict::set_growth(*known, *run);
    grown.why = fmt::format("{} against the accepted set{}{}", variant.variant.name,
                            grown.why.empty() ? "" : "; ", grown.why);
    result.comparisons.push_back(std::move(grown));
  }
}

// A comparison is shown; it decides only where `gate` names it.
void gate_comparisons(ScenarioResult& result) {
  for (const char* name : {"capacity-equal", "set-growth"}) {
    if (result.scenario.gate.count(name) == 0) continue;
    verdict::Check check{fmt::format("gate {}", name), "kept", "not compared",
                         Verdict::kInconclusive, ""};
    for (const contract::Result& compared : result.comparisons) {
      if (compared.contract != name) continue;
      if (compared.state == contract::State::kBroken) {
        check.verdict = Verdict::kFail;
        check.seen = compared.findings.empty() ? "broken" : compared.findings.front().message;
        break;
      }
      if (compared.state == contract::State::kKept) {
        check.verdict = Verdict::kPass;
        check.seen = "kept";
      }
      check.note = compared.why;
    }
    result.checks.push_back(std::move(check));
  }
}

// Its work was done, or all that was started ended as it should.
bool work_was_done(const target::TargetResult& result) {
  if (result.finished || result.hung) return result.finished;
  return std::all_of(result.workers.begin(), result.workers.end(), [](const auto& worker) {
    return worker.exited && worker.exit_code == 0 && !worker.killed_by_us;
  });
}

}  // namespace

Extras load_extras(const Options& options) {
  Extras out;
  std::vector<scenario::Problem> problems;
  const auto collect = [&](auto&& load) {
    try {
      load();
    } catch (const scenario::ScenarioError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  };
  for (const auto& file : options.metrics) {
    collect([&] {
      for (auto& metric : verdict::load_metrics(file)) out.metrics.push_back(std::move(metric));
    });
  }
  for (const auto& file : options.contracts) {
    collect([&] {
      for (auto& contract : contract::load_external_contracts(file)) {
        out.contracts.push_back(std::move(contract));
      }
    });
  }
  refuse_twins(out.metrics, "metrics", problems);
  refuse_twins(out.contracts, "contracts", problems);
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
  return out;
}

std::string today_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts));
}

JudgedRun judge(Job& job, const verdict::Accepted& accepted, const JudgeContext& context) {
  const scenario::Scenario& scenario = *job.scenario;
  const scenario::Variant& variant = *job.variant;
  const scenario::Resolved* resolved = resolved_of(variant);
  JudgedRun out;
  RunRecord& run = out.record;
  run.scenario = scenario.name;
  run.scenario_path = scenario.path.string();
  run.variant = variant.name;
  run.identity = variant.identity;
  run.repeat = job.repeat;
  run.environment = context.environment;
  const Ready* artefact = context.artefacts != nullptr ? context.artefacts->find(variant) : nullptr;
  if (artefact != nullptr) run.environment["artefact"] = brief_json(artefact->identity);
  run.reproduce = reproduce_command(scenario.path, variant.name, context.options);
  run.time_gated = job.time_gated;
  run.time_disturbed = job.disturbed;
  run.wall_s = job.result.wall_s;

  verdict::RunFacts facts;
  facts.skip_reason = job.skip;
  if (job.skip.empty() && !job.ended) {
    facts.interrupted = true;
  } else if (job.ended) {
    run.trace = std::move(job.result.trace);
    facts.workers = std::move(job.result.workers);
    facts.outputs = std::move(job.result.outputs);
    facts.hung = job.result.hung;
    facts.hang_kind = job.result.hang_kind;
    facts.hang_phase = job.result.hang_phase;
    facts.ended_early = job.result.ended_early;
    facts.interrupted = job.result.interrupted;
    facts.infra_error = job.result.infra_error;
    facts.memory_limit_bytes = variant.target.memory_bytes;
    if (!context.options.probes.empty()) {
      run.trace.events.push_back(
          trace::harness_event("probe", {{"status", "asked"}, {"probes", context.options.probes}}));
    }
    trace::merge_spans(run.trace, work_was_done(job.result));
    if (resolved != nullptr) context.keys.append_events(run.trace, job.keys);
  }
  // One view of the finished trace for all that follows.
  const contract::Context over{run.trace, resolved};
  if (job.ended && facts.infra_error.empty()) judge_contracts(context, over, run);
  // What only a later start shows takes as many starts to be seen again.
  const contract::Result* cache = verdict::find_result(run, "cache-sound");
  if (run.repeat > 0 && cache != nullptr && cache->state == contract::State::kBroken)
    run.reproduce = reproduce_command(scenario.path, variant.name, context.options, run.repeat + 1);
  verdict::apply_allow(scenario.allow, context.today, run);
  verdict::classify(facts, contract::view_of(over), run);
  if (!job.note.empty()) run.reason += (run.reason.empty() ? "" : "; ") + job.note;
  verdict::collect_figures(contract::view_of(over), run);
  verdict::apply_metrics(context.extras.metrics, run);
  run.fingerprint = verdict::make_fingerprint(run);
  out.verdict = verdict::judge_run(run, &variant.expect,
                                   gate_context(scenario, accepted, variant.name, context.today));
  return out;
}

void conclude(ScenarioResult& result, bool all_variants_ran, const verdict::Accepted& accepted,
              const JudgeContext& context) {
  std::vector<const RunRecord*> runs;
  for (const VariantResult& variant : result.variants) {
    for (const RunRecord& run : variant.runs) runs.push_back(&run);
  }
  compare_capacity(result);
  compare_growth(result, accepted);
  gate_comparisons(result);
  for (verdict::Check& check :
       verdict::check_allow(result.scenario.allow, runs, all_variants_ran, context.today)) {
    result.checks.push_back(std::move(check));
  }

  // Every verdict with what speaks for it; the first that is as bad as the worst is the reason.
  std::vector<std::pair<Verdict, std::string>> all;
  for (const VariantResult& variant : result.variants) {
    all.emplace_back(variant.verdict.verdict,
                     fmt::format("variant {}: {}", variant.variant.name, variant.verdict.reason));
  }
  for (const verdict::Check& check : result.checks) {
    if (check.verdict == Verdict::kSkip) continue;
    all.emplace_back(check.verdict, fmt::format("{}: {}", check.what, check.seen));
  }
  std::vector<Verdict> verdicts;
  for (const auto& [verdict, why] : all) verdicts.push_back(verdict);
  result.verdict = verdict::worst(verdicts);
  if (result.verdict == Verdict::kPass && result.variants.size() <= 4) {
    std::vector<std::string> each;
    for (const VariantResult& variant : result.variants) {
      each.push_back(variant.variant.name + ": " + variant.verdict.reason);
    }
    result.reason = fmt::format("{}", fmt::join(each, "; "));
    return;
  }
  const auto decisive = std::find_if(
      all.begin(), all.end(), [&](const auto& entry) { return entry.first == result.verdict; });
  if (decisive != all.end()) result.reason = decisive->second;
}

}  // namespace warmgate::run
