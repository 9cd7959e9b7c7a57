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
  add("--scenario", line.skeleton == "-" ? fs::path("/dev/stdout") : fs::path(line.skeleton));
  add("--scenario", line.shrink.scenario);
  // Appended to, which spoils a scenario or another output just the same.
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (tells_github(line) && summary != nullptr && !same_file(line.markdown, summary))
    add("GITHUB_STEP_SUMMARY", summary);
  return out;
}

namespace {

// What the command reads, with what it is.
std::vector<std::pair<fs::path, const char*>> inputs_of(const CommandLine& line) {
  std::vector<std::pair<fs::path, const char*>> out;
  const char* what = line.command == "explain"  ? "one of the logs"
                     : line.command == "probes" ? "one of the reports"
                     : line.command == "bundle" ? "the run that is to be bundled"
                                                : "the scenario itself";
  for (const std::string& path : line.paths) {
    if (path != "-") out.emplace_back(path, what);
  }
  for (const std::string& log : line.against) {
    if (log != "-") out.emplace_back(log, what);
  }
  out.emplace_back(line.report, "the report that is read");
  out.emplace_back(line.like, "the report that is read");
  out.emplace_back(line.manifest, "the manifest that is read");
  out.emplace_back(line.shrink.config, "the config that is read");
  for (const fs::path& file : line.run.metrics) out.emplace_back(file, "of --metrics");
  for (const fs::path& file : line.run.contracts) out.emplace_back(file, "of --contracts");
  std::erase_if(out, [](const auto& input) { return input.first.empty(); });
  return out;
}

bool is_stdout(const std::string& option, const CommandLine& line) {
  return (option == "--json" && line.json == "-") ||
         (option == "--buildkite" && line.buildkite == "-") ||
         (option == "--scenario" && line.skeleton == "-");
}

// What accept writes may be a folder, and need not be there; a scenario in the folder that shrink
// makes need not either; the summary is GitHub's affair.
bool is_told_later(const std::string& option, const fs::path& path, const CommandLine& line) {
  if (line.command == "shrink" && option == "--scenario" && path.has_parent_path() &&
      same_file(path.parent_path(), line.shrink.out))
    return true;
  return (option == "--output" && line.command == "accept") || option == "GITHUB_STEP_SUMMARY";
}

}  // namespace

void check_outputs(const CommandLine& line) {
  const auto outputs = outputs_of(line);
  const auto inputs = inputs_of(line);
  std::vector<scenario::Problem> problems;
  const auto wrong = [&](const std::string& option, std::string message) {
    problems.push_back({option, 0, 0, "", std::move(message)});
  };
  const auto attempt = [&](const std::string& option, auto&& check) {
    try {
      check();
    } catch (const std::runtime_error& error) {
      wrong(option, error.what());
    }
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
    const std::size_t before = problems.size();
    for (std::size_t j = 0; j < i; ++j) {
      if (same_file(outputs[j].second, path))
        wrong(option, path.string() + " is the file that " + outputs[j].first + " writes");
    }
    for (const auto& [input, what] : inputs) {
      if (same_file(input, path)) wrong(option, path.string() + " is " + what);
    }
    if (problems.size() > before || is_stdout(option, line) || is_told_later(option, path, line))
      continue;
    attempt(option, [&] { check_writable(path); });
  }
  if (!line.run.keep.empty()) attempt("--keep", [&] { run::check_keep_folder(line.run.keep); });
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
}

}  // namespace warmgate::cli
