#include "harness/run/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "harness/run/json_text.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/scenario.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::ScenarioError;

// An array of objects; others are left out.
std::vector<const json*> objects(const json& parent, const char* key) {
  std::vector<const json*> out;
  if (!parent.is_object() || !parent.contains(key) || !parent[key].is_array()) return out;
  for (const json& each : parent[key]) {
    if (each.is_object()) out.push_back(&each);
  }
  return out;
}

bool is_time(const json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0 &&
         value.get<double>() < 1e7;
}

void take_run(const json& run, MeasuredStarts& out) {
  if (text_of(run, "outcome") != "passed") {
    ++out.others;
    return;
  }
  ++out.passed;
  if (run.contains("time_disturbed") && run["time_disturbed"] == true) ++out.disturbed;
  std::map<std::string, double> clocks;
  const auto figures = run.find("figures");
  if (figures != run.end() && figures->is_object() && figures->contains("time_to_ready_s") &&
      is_time((*figures)["time_to_ready_s"]))
    clocks["ready"] = (*figures)["time_to_ready_s"].get<double>();
  const json evidence = run.value("evidence", json::object());
  if (!evidence.is_object()) return;
  const json measured = evidence.value("clocks_s", json::object());
  if (measured.is_object()) {
    for (const auto& [name, value] : measured.items()) {
      if (is_time(value)) clocks[name] = value.get<double>();
    }
  }
  for (const auto& [name, value] : clocks) out.clocks[name].push_back(value);
  const json phases = evidence.value("phases_s", json::object());
  if (phases.is_object() && phases.contains("shutdown") && is_time(phases["shutdown"]))
    out.shutdown.push_back(phases["shutdown"].get<double>());
}

int whole_seconds(double seconds) { return static_cast<int>(std::ceil(seconds - 1e-9)); }

}  // namespace

MeasuredStarts read_starts(const std::vector<fs::path>& reports, const std::string& variant) {
  MeasuredStarts out;
  std::set<std::string> sources, known;
  std::map<std::string, std::string> seen;
  for (const fs::path& file : reports) {
    const json report = read_report(file);
    if (!report.contains("scenarios") || !report["scenarios"].is_array())
      refuse_file(file, "has no scenarios");
    // Two names of one report, or a copy of it: no two runs take the same times.
    const std::string id =
        trace::sha256_hex(report["scenarios"].dump(-1, ' ', false, json::error_handler_t::replace));
    if (const auto [other, fresh] = seen.emplace(id, file.string()); !fresh) {
      out.repeated.push_back(fmt::format("{} is the same report as {}, and counts once",
                                         file.string(), other->second));
      continue;
    }
    for (const json* scenario : objects(report, "scenarios")) {
      for (const json* each : objects(*scenario, "variants")) {
        const std::string name = text_of(*each, "name");
        known.insert(name);
        if (!variant.empty() && variant != name && variant != text_of(*each, "base_name")) continue;
        const std::string source = text_of(*scenario, "name") + " " + name;
        if (sources.insert(source).second) out.sources.push_back(source);
        for (const json* run : objects(*each, "runs")) take_run(*run, out);
      }
    }
  }
  const fs::path first = reports.empty() ? fs::path() : reports.front();
  const auto listed = [](const std::set<std::string>& names) {
    return scenario::list_of({names.begin(), names.end()});
  };
  if (!variant.empty() && out.sources.empty())
    refuse_file(first, fmt::format("no variant {}; there are {}", variant, listed(known)));
  if (variant.empty() && out.sources.size() > 1)
    refuse_file(first, fmt::format("holds {}; choose one with --variant", listed(sources)));
  for (auto& [clock, values] : out.clocks) std::sort(values.begin(), values.end());
  std::sort(out.shutdown.begin(), out.shutdown.end());
  return out;
}

Quantile quantile(const std::vector<double>& values) {
  Quantile out;
  out.n = values.size();
  if (values.empty()) return out;
  out.median = values[values.size() / 2];
  out.worst = values.back();
  out.is_worst = values.size() < 100;
  const auto at = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(values.size())));
  out.p99 = out.is_worst ? out.worst : values[at - 1];
  out.unseen = 1 - std::pow(0.05, 1.0 / static_cast<double>(values.size()));
  return out;
}

ProbeValues probe_values(const MeasuredStarts& starts) {
  ProbeValues out;
  // What a probe of the container asks comes first.
  for (const char* clock : {"health", "ready", "models", "port", "process"}) {
    const auto it = starts.clocks.find(clock);
    if (it == starts.clocks.end() || it->second.empty()) continue;
    out.clock = clock;
    out.ready = quantile(it->second);
    break;
  }
  if (out.clock.empty())
    throw std::runtime_error(
        fmt::format("no run that passed ({} of {}) says when it was ready; nothing can be derived",
                    starts.passed, starts.passed + starts.others));
  out.headroom = out.ready.n >= 30 ? 1.5 : 2;
  const double wish = out.ready.p99 * out.headroom;
  out.period_s = wish > 120 ? 10 : wish > 20 ? 5 : 1;
  out.failure_threshold = std::max(3, whole_seconds(wish / out.period_s));
  out.budget_s = out.failure_threshold * out.period_s;
  out.liveness_delay_s = whole_seconds(out.budget_s);
  out.grace_measured = !starts.shutdown.empty();
  if (out.grace_measured)
    out.grace_s = std::max(30, whole_seconds(starts.shutdown.back() * out.headroom));
  out.progress_deadline_s = std::max(600, whole_seconds(out.budget_s + 60));

  out.notes = starts.repeated;
  const auto note = [&](std::string words) { out.notes.push_back(std::move(words)); };
  if (out.ready.n < kStartsForP99)
    note(
        fmt::format("n = {}: with 95 % confidence at most {:.1f} % of starts take longer than the "
                    "slowest seen; to say that of 1 % takes {} starts",
                    out.ready.n, out.ready.unseen * 100, kStartsForP99));
  if (starts.clocks.at(out.clock).size() < starts.passed)
    note(fmt::format("{} of {} passing runs do not show the clock '{}'",
                     starts.passed - starts.clocks.at(out.clock).size(), starts.passed, out.clock));
  if (out.clock != "health")
    note(fmt::format("no health endpoint was asked; the clock is '{}'", out.clock));
  if (starts.others > 0)
    note(fmt::format("{} runs did not pass and are left out: they never became ready",
                     starts.others));
  if (starts.disturbed > 0)
    note(fmt::format("other runs went beside {} of {}: their times are too long, if anything",
                     starts.disturbed, starts.passed));
  for (const char* later : {"first_token", "steady"}) {
    const auto it = starts.clocks.find(later);
    if (it == starts.clocks.end() || it->second.empty()) continue;
    const double more = it->second.back() - out.ready.worst;
    if (more > std::max(1.0, 0.1 * out.ready.worst))
      note(
          fmt::format("'{}' comes up to {:.1f} s after '{}': a readiness probe on it lets "
                      "requests in that early",
                      later, more, out.clock));
  }
  if (!out.grace_measured)
    note("the time to end was not observed: terminationGracePeriodSeconds is Kubernetes' default");
  note(
      "how fast a serving engine answers its probes was not measured: timeoutSeconds of the "
      "liveness probe is a guess");
  note(
      "measured on one machine with its caches as they were: image pulls, other disks and cold "
      "caches come on top");
  return out;
}

std::string probe_yaml(const ProbeValues& v) {
  return fmt::format(
      "# pod\n"
      "terminationGracePeriodSeconds: {}\n"
      "# container\n"
      "startupProbe:       # {} s allowed, {:.1f} s measured\n"
      "  periodSeconds: {}\n"
      "  failureThreshold: {}\n"
      "readinessProbe:     # begins after the startup probe\n"
      "  initialDelaySeconds: 0\n"
      "  periodSeconds: 5\n"
      "  failureThreshold: 3\n"
      "livenessProbe:      # likewise; without a startup probe initialDelaySeconds: {}\n"
      "  initialDelaySeconds: 0\n"
      "  periodSeconds: 10\n"
      "  timeoutSeconds: 5\n"
      "  failureThreshold: 3\n"
      "# spec of a Deployment\n"
      "progressDeadlineSeconds: {}\n",
      v.grace_s, v.budget_s, v.ready.p99, v.period_s, v.failure_threshold, v.liveness_delay_s,
      v.progress_deadline_s);
}

}  // namespace warmgate::run
