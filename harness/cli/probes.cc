#include "harness/run/probes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "harness/cli/commands.h"
#include "harness/cli/result_output.h"
#include "harness/run/manifest.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

using reports::Tone;
using State = run::ManifestFinding::State;

std::string_view word(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kNote:
      return "note";
    case State::kTooShort:
      return "too short";
  }
  return "";
}

void print_clocks(reports::Printer& out, const run::MeasuredStarts& starts) {
  out.row(0, out.cell("clock", Tone::kStrong, 14) + out.cell("n", Tone::kStrong, 6) +
                 out.cell("median", Tone::kStrong, 13) + out.cell("p99", Tone::kStrong, 13) +
                 out.cell("slowest", Tone::kStrong));
  for (const auto& [clock, values] : starts.clocks) {
    const run::Quantile q = run::quantile(values);
    if (q.n == 0) continue;
    out.row(0,
            out.cell(clock, Tone::kPlain, 13) + " " +
                out.cell(std::to_string(q.n), Tone::kPlain, 6) +
                out.cell(reports::duration_text(q.median), Tone::kPlain, 13) +
                out.cell(q.is_worst ? "n < 100" : reports::duration_text(q.p99), Tone::kPlain, 13) +
                out.cell(reports::duration_text(q.worst)));
  }
}

nlohmann::ordered_json to_json(const run::MeasuredStarts& starts, const run::ProbeValues& v,
                               const std::vector<run::ManifestFinding>& findings) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["schema"] = "probes/1.0";
  out["sources"] = starts.sources;
  out["passed"] = starts.passed;
  out["others"] = starts.others;
  out["clocks"] = Json::object();
  for (const auto& [clock, values] : starts.clocks) {
    const run::Quantile q = run::quantile(values);
    if (q.n == 0) continue;
    out["clocks"][clock] = {{"n", q.n},
                            {"median_s", q.median},
                            {"p99_s", q.is_worst ? Json(nullptr) : Json(q.p99)},
                            {"slowest_s", q.worst}};
  }
  out["clock"] = v.clock;
  out["measured_s"] = v.ready.p99;
  out["measured_is"] = v.ready.is_worst ? "slowest" : "p99";
  out["slower_at_most"] = v.ready.unseen;
  out["headroom"] = v.headroom;
  out["startupProbe"] = {{"periodSeconds", v.period_s}, {"failureThreshold", v.failure_threshold}};
  out["readinessProbe"] = {
      {"initialDelaySeconds", 0}, {"periodSeconds", 5}, {"failureThreshold", 3}};
  out["livenessProbe"] = {{"initialDelaySeconds", 0},
                          {"periodSeconds", 10},
                          {"timeoutSeconds", 5},
                          {"failureThreshold", 3}};
  out["liveness_delay_without_startup_s"] = v.liveness_delay_s;
  out["terminationGracePeriodSeconds"] = v.grace_s;
  out["grace_observed"] = v.grace_measured;
  out["progressDeadlineSeconds"] = v.progress_deadline_s;
  out["notes"] = v.notes;
  out["check"] = Json::array();
  for (const run::ManifestFinding& f : findings)
    out["check"].push_back({{"state", word(f.state)}, {"where", f.where}, {"text", f.text}});
  return out;
}

}  // namespace

int probes_command(const CommandLine& line, Console& console) {
  const run::MeasuredStarts starts =
      run::read_starts({line.paths.begin(), line.paths.end()}, line.variant);
  // Before the numbers: a manifest that cannot be read is bad usage either way.
  std::vector<run::Pod> pods;
  if (!line.manifest.empty()) pods = run::read_manifest(line.manifest);
  const run::ProbeValues values = run::probe_values(starts);
  std::vector<run::ManifestFinding> findings;
  if (!line.manifest.empty())
    findings = run::check_manifest(line.manifest, pods, values, line.container);

  reports::Printer out(line.json == "-" ? console.err_style() : console.out_style(),
                       console.secrets());
  out.row(0, out.cell(fmt::format("{}: {} starts that passed", fmt::join(starts.sources, ", "),
                                  starts.passed),
                      Tone::kStrong));
  print_clocks(out, starts);
  out.blank();
  out.paragraph(0, fmt::format("From the clock '{}': {} {}, times {:g}.", values.clock,
                               values.ready.is_worst ? "the slowest start," : "p99,",
                               reports::duration_text(values.ready.p99), values.headroom));
  for (const std::string& note : values.notes) out.paragraph(0, note, Tone::kQuiet, "- ", 2);
  out.blank();
  std::istringstream yaml(run::probe_yaml(values));
  for (std::string text; std::getline(yaml, text);) out.row(0, out.cell(text));
  bool short_of = false;
  if (!line.manifest.empty()) out.blank();
  for (const run::ManifestFinding& f : findings) {
    short_of = short_of || f.state == State::kTooShort;
    const Tone tone = f.state == State::kTooShort ? Tone::kBad
                      : f.state == State::kOk     ? Tone::kGood
                                                  : Tone::kQuiet;
    out.paragraph(0, f.where + ": " + f.text, Tone::kPlain, out.cell(word(f.state), tone) + "  ",
                  word(f.state).size() + 2);
  }
  return deliver_result(to_json(starts, values, findings), out.take(), short_of ? 1 : 0, line,
                        console);
}

}  // namespace warmgate::cli
