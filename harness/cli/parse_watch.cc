#include "harness/cli/parse_watch.h"

#include <CLI/CLI.hpp>

#include "harness/run/inject.h"

namespace warmgate::cli {

void add_watch(CLI::App& app, CommandLine& line, WatchRaw raw) {
  auto* watch = app.add_subcommand("watch", "follow one start of any command, without a scenario");
  watch->add_option("command", line.watch.argv, "what to start, after --")
      ->required()
      ->type_name("-- CMD [ARG...]");
  std::string probes = "watch from inside every process, a list of:";
  for (const run::InjectedProbe& probe : run::probes()) probes += " " + probe.name;
  auto* probe = watch
                    ->add_option("--probe", line.run.probes,
                                 probes + "; default: cuda and python, where they are there")
                    ->type_name("NAMES")
                    ->delimiter(',')
                    ->allow_extra_args(false)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  watch->add_flag("--no-probe", line.no_probe, "put nothing into its processes")->excludes(probe);
  watch->add_flag("--until-ready", line.watch.until_ready, "end it when it is ready");
  watch
      ->add_option("--ready-when", line.watch.ready_text,
                   "a line of its output that holds this text says that it is ready; default: the "
                   "log of an engine that explain knows, or its own events")
      ->type_name("TEXT");
  watch
      ->add_option("--timeout", raw.timeout,
                   "end it after this long, e.g. 90 or 5min: a hang, unless it was ready by then")
      ->type_name("TIME");
  watch->add_flag("--output", line.watch.output, "also what it prints");
  watch
      ->add_option("--json", line.json,
                   "write what was seen as JSON (schema watch/1.0); - = stdout")
      ->type_name("FILE|-");
  watch->add_flag("-q,--quiet", raw.quiet, "the answer alone");
  watch->footer(
      "0 it was ready, or ended well where ready was not waited for, and nothing was found   1 it\n"
      "did not, or something was\n"
      "2 bad usage   4 it could not be started   130 interrupted before it was ready\n"
      "Interrupted after it was ready it is ended, and judged by what was seen. Its stdin is "
      "empty, its\n"
      "TMPDIR a folder of the run; what a program of one's own owes by protocol is not judged.\n"
      "Examples:\n"
      "  warmgate watch -- vllm serve MODEL --load-format dummy\n"
      "  warmgate watch --until-ready --timeout 10min --json start.json -- ./serve.sh\n"
      "  warmgate watch --ready-when 'listening on' --output -- ./engine --port 8000");
}

}  // namespace warmgate::cli
