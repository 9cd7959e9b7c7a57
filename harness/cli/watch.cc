#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/result_output.h"
#include "harness/cli/session.h"
#include "harness/run/inject.h"
#include "harness/run/watch/watch.h"
#include "reports/log_excerpt.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

using reports::Tone;
using run::LiveLine;
using Json = nlohmann::ordered_json;

// What is there of the two that need nothing of the user.
std::vector<std::string> usual_probes() {
  std::vector<std::string> out;
  for (const run::InjectedProbe& probe : run::probes()) {
    if ((probe.name == "cuda" || probe.name == "python") && !run::find(probe).empty())
      out.push_back(probe.name);
  }
  return out;
}

const char* kind_name(LiveLine::Kind kind) {
  switch (kind) {
    case LiveLine::Kind::kStep:
      return "step";
    case LiveLine::Kind::kReady:
      return "ready";
    case LiveLine::Kind::kLate:
      return "late";
    case LiveLine::Kind::kTrouble:
      return "trouble";
    case LiveLine::Kind::kNote:
      break;
  }
  return "note";
}

Tone tone_of_line(LiveLine::Kind kind) {
  switch (kind) {
    case LiveLine::Kind::kStep:
      return Tone::kPlain;
    case LiveLine::Kind::kReady:
      return Tone::kGood;
    case LiveLine::Kind::kLate:
      return Tone::kDoubt;
    case LiveLine::Kind::kTrouble:
      return Tone::kBad;
    case LiveLine::Kind::kNote:
      break;
  }
  return Tone::kQuiet;
}

void show_line(reports::Printer& out, const LiveLine& line) {
  const std::string lead = out.cell(fmt::format("{:8.1f} s  ", line.t_s), Tone::kQuiet);
  out.paragraph(0, line.text, tone_of_line(line.kind), lead, 12);
}

Json findings_of(const std::vector<contract::Finding>& findings) {
  Json out = Json::array();
  for (const contract::Finding& each : findings)
    out.push_back({{"key", each.key}, {"message", each.message}, {"count", each.count}});
  return out;
}

Json to_json(const run::Watched& seen, const std::vector<LiveLine>& lines,
             const std::vector<std::string>& argv) {
  Json out;
  out["schema"] = "watch/1.0";
  out["command"] = argv;
  out["outcome"] = verdict::to_string(seen.run.outcome);
  out["reason"] = seen.run.reason;
  out["ready_s"] = seen.ready_s ? Json(*seen.ready_s) : Json(nullptr);
  out["never_ready"] = seen.never_ready;  // though it was waited for
  out["wall_s"] = seen.run.wall_s;
  out["contracts"] = Json::array();
  for (const contract::Result& each : seen.run.contracts) {
    if (each.state == contract::State::kNotApplicable) continue;
    out["contracts"].push_back({{"contract", each.contract},
                                {"state", contract::to_string(each.state)},
                                {"why", each.why},
                                {"findings", findings_of(each.findings)},
                                {"notes", findings_of(each.notes)}});
  }
  out["hang"] = Json::array();
  for (const trace::Event& each : seen.run.trace.events) {
    if (each.ev != "hang" && each.ev != "stack") continue;
    Json row = each.body.to_json();
    row["ev"] = each.ev;
    out["hang"].push_back(std::move(row));
  }
  out["lines"] = Json::array();
  for (const LiveLine& line : lines)
    out["lines"].push_back(
        {{"t_s", line.t_s}, {"kind", kind_name(line.kind)}, {"text", line.text}});
  return out;
}

bool broken(const run::Watched& seen) {
  for (const contract::Result& each : seen.run.contracts) {
    if (each.state == contract::State::kBroken) return true;
  }
  return false;
}

int code_of(const run::Watched& seen) {
  using verdict::Outcome;
  if (seen.interrupted && !seen.ready_s) return 130;
  if (seen.run.outcome == Outcome::kInfra) return 4;
  if (seen.never_ready) return 1;
  return seen.run.outcome == Outcome::kPassed && !broken(seen) ? 0 : 1;
}

// The lines around what broke; what it prints is not shown otherwise.
void show_log(reports::Printer& out, const verdict::RunRecord& run) {
  const auto excerpt = reports::log_excerpt(run, nullptr);
  if (!excerpt) return;
  out.paragraph(2, excerpt->source + ":", Tone::kQuiet);
  for (const std::string& line : excerpt->lines) out.row(4, out.cell(line, Tone::kQuiet));
}

void show_end(reports::Printer& out, const run::Watched& seen, bool quiet) {
  if (!quiet) out.blank();
  const bool well = code_of(seen) == 0;
  if (seen.interrupted && !seen.ready_s) {
    out.paragraph(0, "interrupted before it was ready", Tone::kBad);
    return;
  }
  const std::string ready = seen.ready_s       ? fmt::format("ready after {:.1f} s", *seen.ready_s)
                            : seen.never_ready ? "it was never ready, though that was waited for"
                                               : "it never said that it is ready";
  // Of a command that said no phase nothing is known but its end.
  const bool passed = seen.run.outcome == verdict::Outcome::kPassed;
  const std::string reason = seen.run.reason.empty() || passed ? "" : ": " + seen.run.reason;
  const std::string_view outcome =
      passed && seen.never_ready ? "failed" : verdict::to_string(seen.run.outcome);
  out.paragraph(0, fmt::format("{}{}; {}", outcome, reason, ready),
                well ? Tone::kGood : Tone::kBad);
  if (!passed && !quiet) show_log(out, seen.run);
  for (const contract::Result& each : seen.run.contracts) {
    for (const contract::Finding& finding : each.findings)
      out.paragraph(2, each.contract + ": " + finding.message, Tone::kBad, "", 2);
    if (quiet) continue;
    for (const contract::Finding& note : each.notes)
      out.paragraph(2, each.contract + ", noted: " + note.message, Tone::kQuiet, "", 2);
    if (each.state == contract::State::kNotObserved && !each.why.empty() &&
        (each.contract == "code-ready" || each.contract == "memory-kept"))
      out.paragraph(2, each.contract + ", not observed: " + each.why, Tone::kQuiet, "", 2);
  }
}

}  // namespace

int watch_command(const CommandLine& line, Console& console) {
  run::WatchOptions options = line.watch;
  options.timeout_s = line.run.timeout_s;
  options.probes = line.no_probe ? std::vector<std::string>() : line.run.probes;
  if (!line.no_probe && options.probes.empty()) options.probes = usual_probes();
  const bool quiet = line.detail == reports::Detail::kQuiet, json = line.json == "-";
  console.know(run::secrets_of(options));
  std::vector<LiveLine> lines;
  // Lines go out as they come, whatever is written in the end.
  const auto print = [&](const std::function<void(reports::Printer&)>& write) {
    reports::Printer out(json ? console.err_style() : console.out_style(), console.secrets());
    write(out);
    json ? console.err(out.take()) : console.out(out.take());
  };
  run::Watched seen;
  CommandLine silent = line;
  silent.detail = reports::Detail::kQuiet;  // no status line between them
  watched(silent, console, [&](target::CancelToken& cancel, const run::Progress&) {
    seen = run::watch(
        options, cancel,
        [&](const LiveLine& said) {
          constexpr std::size_t kMostLines = 10000;
          if (lines.size() < kMostLines) lines.push_back(said);
          if (!quiet) print([&](reports::Printer& out) { show_line(out, said); });
        },
        [&](std::string_view text) {
          print([&](reports::Printer& out) {
            out.row(0, out.cell("           | ", Tone::kQuiet) + out.cell(text));
          });
        });
  });
  console.know(seen.secrets);
  reports::Printer end(json ? console.err_style() : console.out_style(), console.secrets());
  show_end(end, seen, quiet);
  if (json) console.err(end.take());
  return deliver_result(to_json(seen, lines, options.argv), json ? "" : end.take(), code_of(seen),
                        line, console);
}

}  // namespace warmgate::cli
