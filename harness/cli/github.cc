#include "harness/cli/github.h"

#include <cstdlib>
#include <stdexcept>

#include "harness/cli/output_file.h"
#include "harness/cli/repository.h"
#include "reports/github.h"
#include "reports/markdown.h"

namespace warmgate::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool tells_github(const CommandLine& line) {
  if (line.command != "run" && line.command != "ab" && line.command != "gate") return false;
  return line.github.value_or(environment("GITHUB_ACTIONS") == "true");
}

void tell_github(const reports::Report& report, const CommandLine& line, Console& console) {
  if (!tells_github(line)) return;
  console.err(reports::github_annotations(report, annotation_path));
  const std::string summary = environment("GITHUB_STEP_SUMMARY");
  // Somebody who has the summary written there with --markdown does not want it twice.
  if (summary.empty() || (!line.markdown.empty() && same_file(line.markdown, summary))) return;
  try {
    append_file(summary, reports::kMarkdownLimit,
                [&](std::size_t room) { return reports::markdown_report(report, room); });
  } catch (const std::runtime_error& error) {
    if (line.github) throw;
    console.complain(error.what());
  }
}

void tell_github(const scenario::ScenarioError& error, const CommandLine& line, Console& console) {
  if (tells_github(line))
    console.err(reports::github_annotations(error.problems(), annotation_path));
}

void tell_github(const std::string& error, const CommandLine& line, Console& console) {
  if (tells_github(line)) console.err(reports::github_error(error));
}

}  // namespace warmgate::cli
