// What the user asked for, after parsing: plain data that every command takes.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/plan/shrink/shrink.h"
#include "harness/run/run.h"
#include "harness/run/watch/watch.h"
#include "harness/verdict/verdict.h"
#include "reports/terminal.h"

namespace warmgate::cli {

enum class ColourChoice { kAuto, kAlways, kNever };

struct CommandLine {
  std::string command;             // run ab gate step …
  std::vector<std::string> paths;  // scenarios, folders, globs
  std::vector<std::string> sides;  // ab: [A B]; empty = the first two variants
  run::Options run;

  std::vector<std::string> tags;     // gate: only scenarios with one of them
  std::vector<std::string> changed;  // gate: --changed as written
  bool keep_going = false;           // gate: run what loads, even if other files are wrong
  std::set<verdict::Verdict> soft;
  bool allow_skip = false;

  std::string json;  // file, "-" = stdout, "" = none
  std::string junit;
  std::string markdown;
  std::string buildkite;       // file, "-" = stdout, "" = none
  std::optional<bool> github;  // annotations and step summary; empty = where GITHUB_ACTIONS=true
  ColourChoice colour = ColourChoice::kAuto;
  reports::Detail detail = reports::Detail::kNormal;

  std::string fingerprint;       // step: the failure that is looked for
  std::filesystem::path like;    // step: a JSON report with that failure
  std::string build;             // step: shell command that builds first
  std::filesystem::path report;  // accept: a JSON report to take instead of a new run
  std::filesystem::path output;  // accept: where to; "" = beside the scenario

  plan::shrink::Request shrink;
  std::vector<std::string> against;  // explain: logs of another start to compare with
  std::vector<std::string> known;    // explain: folders with more known regressions
  std::string skeleton;              // explain: file for a scenario, "-" = stdout, "" = none
  std::string engine_name;           // explain: whose log it is; "" = find out
  std::optional<int> ended;          // explain: exit status as a shell says it, 137 = SIGKILL

  run::WatchOptions watch;
  bool no_probe = false;      // watch
  std::string target_preset;  // doctor: of which engine; "" = the machine alone

  std::set<std::string> with;      // bundle: caches cores prompts
  std::string variant, container;  // probes
  std::filesystem::path manifest;  // probes: --check
};

}  // namespace warmgate::cli
