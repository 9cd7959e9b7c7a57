// What run, ab, gate, plan and keys share: an interruptible call of run_scenarios() with progress,
// and the writing of its reports.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "harness/cli/command_line.h"
#include "harness/cli/console.h"
#include "harness/cli/outputs.h"
#include "reports/report.h"

namespace warmgate::cli {

/// Calls `work` with a token that SIGINT, SIGTERM and SIGHUP cancel (a second one ends warmgate at
/// once with 130) and with a progress function that feeds the status line, which is gone again when
/// this returns.
void watched(const CommandLine& line, Console& console,
             const std::function<void(target::CancelToken&, const run::Progress&)>& work);

/// run_scenarios() under watched().
run::GateResult execute(const std::vector<std::filesystem::path>& files,
                        const run::Options& options, const CommandLine& line, Console& console);

/// run_loaded() under watched().
run::GateResult execute(std::vector<scenario::Scenario> scenarios, const run::Options& options,
                        const CommandLine& line, Console& console);

/// The exit code of run, gate and ab: `verdicts` after --soft, by the order 1, 4, 3, 0; 130 if the
/// run was interrupted.
int exit_code_of(const std::vector<verdict::Verdict>& verdicts, bool interrupted,
                 const CommandLine& line);

/// Writes --json, --junit, --markdown, --buildkite and, of `result`, --keep, and what GitHub
/// Actions is told; `text` goes to stdout, or to stderr where --json - or --buildkite - takes
/// stdout. Returns `code`, or 4 if writing failed and nothing worse was found.
int deliver(const reports::Report& report, const std::string& text, int code,
            const CommandLine& line, Console& console, const run::GateResult* result = nullptr);

/// The style of the stream that deliver() will write the text to.
reports::Style report_style(const CommandLine& line, const Console& console);

}  // namespace warmgate::cli
