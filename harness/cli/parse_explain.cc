#include "harness/cli/parse_explain.h"

#include <CLI/CLI.hpp>

#include "harness/cli/values.h"

namespace warmgate::cli {

void add_explain(CLI::App& app, CommandLine& line, ExplainRaw raw) {
  auto* explain =
      app.add_subcommand("explain", "what a server's start-up log says, and why it fell");
  explain
      ->add_option("logs", line.paths,
                   "logs of one start: its ranks, pods or members; plain, gzip, zstd, xz or bzip2; "
                   "- = stdin")
      ->required()
      ->type_name("LOG");
  explain
      ->add_option("--against", line.against,
                   "the log of another start, usually one that went well; repeatable")
      ->type_name("LOG")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  explain->add_option("--engine", line.engine_name, "whose log it is, e.g. vllm; default: find out")
      ->type_name("NAME");
  explain
      ->add_option("--ended", line.ended,
                   "exit status of the start, as a shell says it: 137 = killed by SIGKILL")
      ->check(CLI::Validator(
          [](const std::string& text) { return whole_number_error(text, 0, 255); }, ""))
      ->type_name("N");
  explain
      ->add_option("--known", line.known,
                   "a folder with known regressions of your own, as in fixtures/known; repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  explain
      ->add_option("--scenario", line.skeleton,
                   "write the skeleton of a scenario that would start it again; - = stdout, and "
                   "nothing else")
      ->type_name("FILE|-");
  explain
      ->add_option("--soft", raw.soft, "verdicts that shall not fail the caller, e.g. inconclusive")
      ->type_name("NAMES")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  explain
      ->add_option("--json", line.json,
                   "write the explanation as JSON (schema explain/1.0); - = stdout")
      ->type_name("FILE|-");
  auto* quiet = explain->add_flag("-q,--quiet", raw.quiet, "the answer alone");
  explain
      ->add_flag("-v,--verbose", raw.verbose,
                 "every line that says something, and those not placed")
      ->excludes(quiet);
  explain->footer(
      "The first line is the answer: mine, infrastructure, known, unclear, incomplete, or starts.\n"
      "0 it started   1 it failed   2 bad usage, or no log   3 the log ends and nothing failed "
      "yet\n"
      "4 the machine was at fault, for certain: start again\n"
      "Examples:\n"
      "  warmgate explain vllm.log\n"
      "  kubectl logs POD --previous | warmgate explain - --ended 137\n"
      "  warmgate explain rank*.log.gz --json -\n"
      "  warmgate explain today.log --against yesterday.log\n"
      "  warmgate explain vllm.log --scenario repro.yaml; warmgate resolve repro.yaml");
}

}  // namespace warmgate::cli
