#include "harness/cli/problems_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "harness/trace/secrets.h"

namespace warmgate::cli {
namespace {

// The line itself; "" if it cannot be read.
std::string source_line(const std::string& file, int number) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return "";  // a device has no end
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < number; ++i) {
    if (!std::getline(in, line)) return "";
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

// `NAME: value` pairs of a line of YAML, in whatever brackets.
void find_yaml_secrets(std::string_view line, std::vector<std::string>& out) {
  for (std::size_t colon = line.find(": "); colon != line.npos;
       colon = line.find(": ", colon + 1)) {
    const std::size_t begin = line.find_last_of(" \t{,\"'", colon == 0 ? 0 : colon - 1);
    const std::size_t name = begin == line.npos ? 0 : begin + 1;
    std::size_t from = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    std::size_t to = std::min(line.find_first_of(",}", from), line.size());
    if (from < line.size() && (line[from] == '"' || line[from] == '\'')) {
      to = std::min(line.find(line[from], from + 1), line.size());
      ++from;
    }
    while (to > from && (line[to - 1] == ' ' || line[to - 1] == '\t')) --to;
    if (name < colon && from < to)
      trace::find_named_secret(line.substr(name, colon - name), line.substr(from, to - from), out);
  }
}

}  // namespace

std::vector<std::string> secrets_near(const scenario::ScenarioError& error) {
  std::vector<std::string> out;
  for (const scenario::Problem& problem : error.problems()) {
    if (problem.line <= 0) continue;
    const std::string line = source_line(problem.file, problem.line);
    trace::find_secrets(line, out);
    find_yaml_secrets(line, out);
  }
  return trace::spellings(std::move(out));
}

std::string problems_text(const scenario::ScenarioError& error, const reports::Style& style) {
  reports::Printer out(style, secrets_near(error));
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
