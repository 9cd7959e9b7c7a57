#include "harness/cli/problems_text.h"

#include <fmt/format.h>

#include <fstream>

namespace warmgate::cli {
namespace {

// The line itself; "" if it cannot be read.
std::string source_line(const std::string& file, int number) {
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < number; ++i) {
    if (!std::getline(in, line)) return "";
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

}  // namespace

std::string problems_text(const scenario::ScenarioError& error, const reports::Style& style) {
  reports::Printer out(style, {});
  for (const scenario::Problem& problem : error.problems()) {
    std::string where = problem.file;
    if (problem.line > 0) where += fmt::format(":{}:{}", problem.line, problem.column);
    std::string what = problem.key_path.empty() ? "" : problem.key_path + ": ";
    what += problem.message;
    out.row(0, out.cell(where + ":", reports::Tone::kStrong) + " " + out.cell(what));
    if (problem.line <= 0) continue;
    const std::string line = source_line(problem.file, problem.line);
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::string label = fmt::format("{:>5} | ", problem.line);
    // A long flow line is cut so that the column stays in sight.
    const std::size_t column =
        problem.column > 0 ? static_cast<std::size_t>(problem.column) - 1 : 0;
    const std::size_t room =
        out.style().width > label.size() + 10 ? out.style().width - label.size() : 30;
    std::size_t from = column + 20 > room ? column + 20 - room : 0;
    while (from > 0 && from < line.size() &&
           (static_cast<unsigned char>(line[from]) & 0xc0) == 0x80)
      --from;
    if (from >= line.size()) from = 0;
    const std::string seen =
        reports::shorten(out.clean(line.substr(from)), room, out.style().charset);
    out.row(0, out.cell(label, reports::Tone::kQuiet) + seen);
    if (column < from || column > line.size()) continue;
    const std::size_t under = reports::columns(out.clean(line.substr(from, column - from)));
    out.row(0, std::string(label.size() + under, ' ') + out.cell("^", reports::Tone::kBad));
  }
  const std::size_t count = error.problems().size();
  out.row(0,
          out.cell(fmt::format("{} problem{}; nothing was started", count, count == 1 ? "" : "s")));
  return out.take();
}

}  // namespace warmgate::cli
