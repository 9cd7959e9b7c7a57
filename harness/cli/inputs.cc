#include "harness/cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "harness/run/bundle.h"
#include "harness/run/reproduce.h"

namespace warmgate::cli {
namespace {

namespace fs = std::filesystem;

// By its first lines: "schema" is the first field that a report has.
bool is_report(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string head(512, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head.starts_with("{") && head.find("\"schema\"") != head.npos &&
         head.find("\"report/") != head.npos;
}

std::string what_instead(const std::string& path, bool runs_bundles) {
  if (!runs_bundles && run::is_bundle(path)) {
    std::error_code failed;
    return fmt::format("is a {}, not a scenario; `{}` repeats it",
                       fs::is_directory(path, failed) ? "run that --keep wrote" : "bundle",
                       run::shell_line({"warmgate", "run", path}));
  }
  if (is_report(path))
    return fmt::format(
        "is a JSON report, not a scenario; `{}` makes a bundle of it that `warmgate run` repeats, "
        "and probes and accept --report read it",
        run::shell_line({"warmgate", "bundle", path}));
  return "";
}

}  // namespace

void check_inputs(const CommandLine& line) {
  static constexpr auto kTakeScenarios = std::to_array<std::string_view>(
      {"run", "ab", "gate", "step", "resolve", "plan", "keys", "accept"});
  if (std::find(kTakeScenarios.begin(), kTakeScenarios.end(), line.command) == kTakeScenarios.end())
    return;
  std::vector<scenario::Problem> problems;
  for (const std::string& path : line.paths) {
    std::string why = what_instead(path, line.command == "run");
    if (!why.empty()) problems.push_back({path, 0, 0, "", std::move(why)});
  }
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
}

}  // namespace warmgate::cli
