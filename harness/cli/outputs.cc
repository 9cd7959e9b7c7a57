#include "harness/cli/outputs.h"

#include <cstdlib>

#include "harness/cli/github.h"
#include "harness/cli/output_file.h"
#include "harness/run/kept.h"

namespace warmgate::cli {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, fs::path>> outputs_of(const CommandLine& line) {
  std::vector<std::pair<std::string, fs::path>> out;
  const auto add = [&](const char* option, const fs::path& path) {
    if (!path.empty()) out.emplace_back(option, path);
  };
  add("--json", line.json == "-" ? fs::path("/dev/stdout") : fs::path(line.json));
  add("--junit", line.junit);
  add("--markdown", line.markdown);
  add("--buildkite", line.buildkite == "-" ? fs::path("/dev/stdout") : fs::path(line.buildkite));
  add("--rows", line.run.rows);
  add("--output", line.output);
  // Appended to, which spoils a scenario or another output just the same.
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (tells_github(line) && summary != nullptr && !same_file(line.markdown, summary))
    add("GITHUB_STEP_SUMMARY", summary);
  return out;
}

void check_outputs(const CommandLine& line) {
  const auto outputs = outputs_of(line);
  std::vector<scenario::Problem> problems;
  const auto wrong = [&](const std::string& option, std::string message) {
    problems.push_back({option, 0, 0, "", std::move(message)});
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (path == "-") {
      wrong(option,
            "only --json and --buildkite can be '-'; give a file, or ./- if it is called so");
      continue;
    }
    std::error_code error;
    if (option != "--output" && fs::is_directory(path, error)) {
      wrong(option, path.string() + " is a folder; name a file in it");
      continue;
    }
    if (path == "/dev/null") continue;  // takes any number of outputs
    for (std::size_t j = 0; j < i; ++j) {
      if (same_file(outputs[j].second, path))
        wrong(option, path.string() + " is the file that " + outputs[j].first + " writes");
    }
    for (const std::string& input : line.paths) {
      if (same_file(input, path)) wrong(option, path.string() + " is the scenario itself");
    }
  }
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
  if (!line.run.keep.empty()) run::check_keep_folder(line.run.keep);
  for (const auto& [option, path] : outputs) {
    if (option == "--json" && line.json == "-") continue;
    if (option == "--buildkite" && line.buildkite == "-") continue;
    // What accept writes may be a folder, and need not be there.
    if (option != "--output" && option != "GITHUB_STEP_SUMMARY") check_writable(path);
  }
}

}  // namespace warmgate::cli
