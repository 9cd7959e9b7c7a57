#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/to_report.h"

namespace warmgate::cli {

int run_command(const CommandLine& line, Console& console) {
  check_outputs(line);
  run::Options options = line.run;
  options.verb = "run";
  const run::GateResult result = execute({line.paths.front()}, options, line, console);
  const int code = exit_code_of({result.verdict}, result.interrupted, line);
  const reports::Report report = to_report(result, line, code);
  return deliver(report, terminal_report(report, report_style(line, console), line.detail), code,
                 line, console);
}

}  // namespace warmgate::cli
