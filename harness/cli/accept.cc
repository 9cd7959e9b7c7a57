#include "harness/run/accept.h"

#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "reports/printer.h"

namespace warmgate::cli {

int accept_command(const CommandLine& line, Console& console) {
  std::vector<run::AcceptedFile> files;
  int code = 0;
  if (!line.report.empty()) {
    files = run::accept_report(line.report, line.output);
  } else {
    const run::GateResult result = execute({line.paths.front()}, line.run, line, console);
    if (result.interrupted) return 130;
    for (const std::string& error : result.output_errors) {
      console.complain(error);
      code = 4;
    }
    files = run::accept(result, line.output);
  }
  reports::Printer out(console.out_style(), {});
  for (const run::AcceptedFile& f : files) {
    out.row(0, out.cell(f.scenario, reports::Tone::kStrong) + "  " + out.cell(f.file.string()));
    const auto list = [&](const char* what, const std::vector<std::string>& names) {
      if (!names.empty()) out.paragraph(2, fmt::format("{}: {}", what, fmt::join(names, ", ")));
    };
    list("accepted", f.variants);
    list("kept as they were", f.kept);
    for (const std::string& reason : f.passed_over) out.paragraph(2, "passed over: " + reason);
  }
  console.out(out.take());
  if (console.out_error().empty()) return code;
  console.complain(console.out_error());
  return 4;
}

}  // namespace warmgate::cli
