#include "reports/json.h"

#include <cmath>
#include <set>

#include "harness/trace/event.h"
#include "reports/artefacts.h"
#include "reports/evidence.h"
#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using Json = nlohmann::ordered_json;

// Copies a value with every string made valid and masked, keys too: an environment record may hold
// a secret in either.
template <typename From>
Json cleaned(const From& value, const std::vector<std::string>& secrets) {
  if (value.is_object()) {
    Json out = Json::object();
    for (const auto& [key, item] : value.items())
      out[mask(valid_utf8(key), secrets)] = cleaned(item, secrets);
    return out;
  }
  if (value.is_array()) {
    Json out = Json::array();
    for (const auto& item : value) out.push_back(cleaned(item, secrets));
    return out;
  }
  if (value.is_string())
    return mask(valid_utf8(value.template get_ref<const std::string&>()), secrets);
  if (value.is_number_float()) {
    const double number = value.template get<double>();
    return std::isfinite(number) ? Json(number) : Json(nullptr);
  }
  return Json(value);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// The events of a run that prove something, each once: several findings often share one.
class Proofs {
 public:
  explicit Proofs(const trace::Trace* trace) : trace_(trace) {}

  Json add(const std::vector<std::size_t>& events) {
    Json out = Json::array();
    for (const std::size_t index : events) {
      if (!trace_ || index >= trace_->events.size()) continue;
      used_.insert(index);
      out.push_back(index);
    }
    return out;
  }

  Json events() const {
    Json out = Json::array();
    for (const std::size_t index : used_) {
      const trace::Event& e = trace_->events[index];
      Json event;
      event["index"] = index;
      event["ev"] = e.ev;
      event["t"] = e.t_ns;
      event["rank"] = e.rank ? Json(*e.rank) : Json(nullptr);
      event["src"] = e.src;
      event["source"] = e.source;
      event["line"] = e.line;
      event["body"] = Json(e.body.to_json());
      out.push_back(std::move(event));
    }
    return out;
  }

 private:
  const trace::Trace* trace_;
  std::set<std::size_t> used_;
};

Json finding_json(const contract::Finding& f, Proofs& proofs) {
  Json out;
  out["contract"] = f.contract;
  out["phase"] = f.phase;
  out["layer"] = f.layer < 0 ? Json(nullptr) : Json(f.layer);
  out["layer_kind"] = f.layer_kind;
  out["role"] = f.role;
  out["rank"] = f.rank < 0 ? Json(nullptr) : Json(f.rank);
  out["key"] = f.key;
  out["expected"] = f.expected;
  out["seen"] = f.seen;
  out["message"] = f.message;
  out["count"] = f.count;
  out["proof"] = proofs.add(f.events);
  out["detail"] = f.detail.is_null() ? Json::object() : Json(f.detail);
  return out;
}

Json findings_json(const std::vector<contract::Finding>& findings, Proofs& proofs) {
  Json out = Json::array();
  for (const contract::Finding& f : findings) out.push_back(finding_json(f, proofs));
  return out;
}

Json contract_json(const contract::Result& result, Proofs& proofs) {
  Json out;
  out["contract"] = result.contract;
  out["state"] = contract::to_string(result.state);
  out["why"] = result.why;
  out["missing"] = result.missing;
  if (!result.shown_by.empty()) out["shown_by"] = result.shown_by;
  out["findings"] = findings_json(result.findings, proofs);
  out["notes"] = findings_json(result.notes, proofs);
  return out;
}

Json check_json(const verdict::Check& check) {
  Json out;
  out["what"] = check.what;
  out["expected"] = check.expected;
  out["seen"] = check.seen;
  out["verdict"] = verdict::to_string(check.verdict);
  out["note"] = check.note;
  return out;
}

Json checks_json(const std::vector<verdict::Check>& checks) {
  Json out = Json::array();
  for (const verdict::Check& check : checks) out.push_back(check_json(check));
  return out;
}

Json worker_json(const verdict::WorkerEnd& w) {
  Json out;
  out["rank"] = w.rank;
  out["pid"] = w.pid;
  out["exit_code"] = w.exited ? Json(w.exit_code) : Json(nullptr);
  out["signal"] = w.exited || w.signal == 0 ? Json(nullptr) : Json(w.signal);
  out["killed_by_us"] = w.killed_by_us;
  out["needed_sigkill"] = w.needed_sigkill;
  out["peak_rss_bytes"] = w.peak_rss_bytes;
  out["wall_s"] = number(w.wall_s);
  out["cpu_s"] = number(w.cpu_s);
  return out;
}

Json run_json(const verdict::RunRecord& run) {
  Json out;
  out["repeat"] = run.repeat;
  out["identity"] = run.identity;
  out["outcome"] = verdict::to_string(run.outcome);
  out["reason"] = run.reason;
  out["phase"] = run.phase;
  out["kind"] = run.kind;
  out["exit_code"] = run.exit_code ? Json(*run.exit_code) : Json(nullptr);
  out["signal"] = run.signal_name;
  out["first_failed_rank"] =
      run.first_failed_rank < 0 ? Json(nullptr) : Json(run.first_failed_rank);
  out["phases_ended"] = run.phases_ended;
  Json contracts = Json::array(), allowed = Json::array(), workers = Json::array(),
       outputs = Json::array(), figures = Json::object(), sets = Json::object();
  Proofs proofs(&run.trace);
  for (const contract::Result& result : run.contracts)
    contracts.push_back(contract_json(result, proofs));
  for (const auto& entry : run.allowed) {
    Json item;
    item["reason"] = entry.reason;
    item["issue"] = entry.issue;
    item["where"] = entry.where;
    item["finding"] = finding_json(entry.finding, proofs);
    allowed.push_back(std::move(item));
  }
  for (const auto& [name, value] : run.figures) figures[name] = number(value);
  Json units = Json::object();
  for (const auto& [name, info] : run.figure_info)
    units[name] = {{"unit", info.unit}, {"direction", info.direction}, {"origin", info.origin}};
  for (const auto& [name, items] : run.sets) sets[name] = items;
  for (const verdict::WorkerEnd& w : run.workers) workers.push_back(worker_json(w));
  for (const verdict::Output& output : run.outputs) {
    Json item;
    item["rank"] = output.rank;
    item["stream"] = output.stream;
    item["bytes"] = output.bytes;
    item["head"] = output.head;
    item["tail"] = output.tail;
    item["matched"] = output.matched;
    outputs.push_back(std::move(item));
  }
  out["contracts"] = std::move(contracts);
  out["allowed"] = std::move(allowed);
  out["events"] = proofs.events();
  out["figures"] = std::move(figures);
  out["figure_info"] = std::move(units);
  out["sets"] = std::move(sets);
  out["workers"] = std::move(workers);
  out["outputs"] = std::move(outputs);
  if (run.fingerprint) {
    out["fingerprint"] = Json(run.fingerprint->to_json());
    out["fingerprint"]["id"] = run.fingerprint->id();
  } else {
    out["fingerprint"] = nullptr;
  }
  out["environment"] = run.environment.is_null() ? Json::object() : Json(run.environment);
  out["reproduce"] = run.reproduce;
  out["time_gated"] = run.time_gated;
  out["time_disturbed"] = run.time_disturbed;
  out["wall_s"] = number(run.wall_s);
  out["evidence"] = run_evidence_json(run);
  return out;
}

Json variant_json(const VariantReport& variant) {
  Json out;
  out["name"] = variant.name;
  out["base_name"] = variant.base_name;
  out["behaviours"] = variant.behaviours;
  out["identity"] = variant.identity;
  out["modelled"] = variant.modelled;
  out["device"] = variant.device;
  out["expected"] = variant.expected;
  if (variant.artefact) out["artefact"] = verdict::to_json(*variant.artefact);
  out["verdict"] = verdict::to_string(variant.verdict.verdict);
  out["reason"] = variant.verdict.reason;
  out["checks"] = checks_json(variant.verdict.checks);
  Json runs = Json::array();
  for (const verdict::RunRecord* run : variant.runs) runs.push_back(run_json(*run));
  out["runs"] = std::move(runs);
  return out;
}

Json scenario_json(const ScenarioReport& scenario) {
  Json out;
  out["name"] = scenario.name;
  out["path"] = scenario.path;
  out["about"] = scenario.about;
  out["source"] = Json(scenario.source);
  out["tags"] = scenario.tags;
  out["verdict"] = verdict::to_string(scenario.verdict);
  out["reason"] = scenario.reason;
  out["selection"] = scenario.selection;
  out["checks"] = checks_json(scenario.checks);
  Json comparisons = Json::array(), variants = Json::array();
  Proofs none(nullptr);
  for (const contract::Result& result : scenario.comparisons)
    comparisons.push_back(contract_json(result, none));
  for (const VariantReport& variant : scenario.variants) variants.push_back(variant_json(variant));
  Json differences = Json::array();
  for (const verdict::ArtefactDifference& difference : artefact_differences(scenario))
    differences.push_back(verdict::to_json(difference));
  out["comparisons"] = std::move(comparisons);
  if (!differences.empty()) out["artefact_differences"] = std::move(differences);
  out["variants"] = std::move(variants);
  out["evidence"] = evidence_json(evidence_of(scenario));
  return out;
}

}  // namespace

Json json_report(const Report& report) {
  Json out;
  out["schema"] = kReportSchema;
  out["warmgate"] = report.version;
  out["verb"] = report.verb;
  out["command"] = report.command;
  out["call"] = report.call.is_null() ? Json::object() : Json(report.call);
  out["verdict"] = verdict::to_string(report.verdict);
  out["exit_code"] = report.exit_code;
  out["interrupted"] = report.interrupted;
  out["wall_s"] = number(report.wall_s);
  out["not_observed"] = report.not_observed;
  out["machine"] = report.machine.is_null() ? Json::object() : Json(report.machine);
  Json scenarios = Json::array();
  for (const ScenarioReport& scenario : report.scenarios)
    scenarios.push_back(scenario_json(scenario));
  out["scenarios"] = std::move(scenarios);
  return cleaned(out, report.secrets);
}

std::string json_text(const Report& report) {
  return json_shown_safely(
             json_report(report).dump(2, ' ', false, Json::error_handler_t::replace)) +
         "\n";
}

}  // namespace warmgate::reports
