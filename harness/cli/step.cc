#include "harness/run/step.h"

#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/to_report.h"

namespace warmgate::cli {
namespace {

std::string_view word(run::Step step) {
  switch (step) {
    case run::Step::kGood:
      return "good";
    case run::Step::kBad:
      return "bad";
    case run::Step::kCannotJudge:
      return "cannot be judged";
    case run::Step::kStop:
      return "stop";
  }
  return "";
}

}  // namespace

int step_command(const CommandLine& line, Console& console) {
  run::StepOptions options;
  options.scenario = line.paths.front();
  options.run = line.run;
  options.run.verb = "run";
  options.fingerprint = line.fingerprint;
  options.like = line.like;
  if (!line.build.empty()) options.build = {"/bin/sh", "-c", line.build};
  run::StepResult result;
  watched(line, console, [&](target::CancelToken& cancel, const run::Progress& progress) {
    result = run::step(options, cancel, progress);
  });
  const int code = result.interrupted ? 130 : static_cast<int>(result.step);
  reports::Printer last(report_style(line, console), secret_values());
  last.paragraph(0, fmt::format("step: {}: {}", word(result.step), result.reason));
  const std::string verdict = last.take();
  if (!result.gate) {
    console.err(verdict);
    return code;
  }
  const reports::Report report = to_report(*result.gate, line, code);
  const std::string text =
      terminal_report(report, report_style(line, console), line.detail) + verdict;
  // A report that cannot be written must not be taken for a judgement of the tree.
  return deliver(report, text, code, line, console) == 4 ? 128 : code;
}

}  // namespace warmgate::cli
