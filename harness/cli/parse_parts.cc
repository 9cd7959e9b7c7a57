#include "harness/cli/parse_parts.h"

#include "harness/cli/parse_explain.h"
#include "harness/cli/parse_watch.h"
#include "harness/cli/values.h"
#include "harness/run/inject.h"

namespace warmgate::cli::parts {
namespace {

const std::string kDate = "YYYY-MM-DD";

}  // namespace

CLI::Validator whole(long least, long most) {
  return CLI::Validator(
      [=](const std::string& text) { return whole_number_error(text, least, most); }, "");
}

CLI::Validator unnamed(CLI::Validator validator) { return validator.description(""); }

void add_colour(CLI::App* sub, Raw& raw) {
  sub->add_option("--color,--colour", raw.colour, "auto: on a terminal, unless NO_COLOR is set")
      ->check(unnamed(CLI::IsMember({"auto", "always", "never"})))
      ->type_name("auto|always|never");
}

void add_detail(CLI::App* sub, Raw& raw) {
  auto* quiet = sub->add_flag("-q,--quiet", raw.quiet, "only what did not pass, and the last line");
  sub->add_flag("-v,--verbose", raw.verbose, "every figure, note and captured line")
      ->excludes(quiet);
}

void add_scenario_choices(CLI::App* sub, CommandLine& line) {
  sub->add_option("--device", line.run.load.device, "meta, cpu or cuda instead of the scenario's")
      ->type_name("NAME");
  sub->add_option("--set", line.run.load.overlays,
                  "override a value, e.g. --set limits.max_model_len=65536; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_variants(CLI::App* sub, Raw& raw) {
  sub->add_option("--variant", raw.variants, "only this variant; repeatable, or A,B")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_kernels(CLI::App* sub, CommandLine& line, Raw& raw) {
  auto* dir = sub->add_option("--cache-dir", line.run.cache_dir,
                              "compiled kernels; default $WARMGATE_KERNEL_CACHE, else the user's "
                              "cache folder")
                  ->type_name("DIR");
  sub->add_flag("--no-cache", line.run.no_cache, "start with an empty kernel cache of its own")
      ->excludes(dir);
  sub->add_option("--jit", raw.jit, "who compiles run-time kernels; auto = NVRTC if it is there")
      ->check(unnamed(CLI::IsMember({"auto", "nvrtc", "host"})))
      ->type_name("auto|nvrtc|host");
  sub->add_option("--engine", line.run.engine, "warmgate-engine to start instead of the one beside")
      ->type_name("FILE");
}

void add_running(CLI::App* sub, CommandLine& line, Raw& raw) {
  add_scenario_choices(sub, line);
  add_kernels(sub, line, raw);
  sub->add_option("-j,--jobs", line.run.jobs, "runs at a time; 0 = one a core")
      ->check(whole(0, 4096))
      ->type_name("N");
  sub->add_option("--timeout", raw.timeout, "longest time of one run, e.g. 90 or 5min")
      ->type_name("TIME");
  sub->add_option("--today", line.run.today, "the date that `until` of an allow entry is held to")
      ->check(CLI::Validator(check_date, ""))
      ->type_name(kDate);
  sub->add_flag("--rebuild", line.run.rebuild,
                "build the environments of wheels and worktrees anew, and download again");
  sub->add_option("--rows", line.run.rows, "write a JSON line at each transition of each run")
      ->type_name("FILE");
  std::string probes = "watch from inside every process, a list of:";
  for (const run::InjectedProbe& probe : run::probes())
    probes += " " + probe.name + " (" + probe.about + ")";
  sub->add_option("--probe", line.run.probes, probes + "; harness/probe/README.md")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--metrics", line.run.metrics, "more metrics, as data; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->check(unnamed(CLI::ExistingFile))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--contracts", line.run.contracts, "more contracts, as programs; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->check(unnamed(CLI::ExistingFile))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_soft(CLI::App* sub, Raw& raw) {
  sub->add_option("--soft", raw.soft, "verdicts that shall not fail the caller, e.g. inconclusive")
      ->type_name("NAMES")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_judging(CLI::App* sub, CommandLine& line, Raw& raw) {
  sub->add_option("--repeat", line.run.repeat, "run each variant this often")
      ->check(whole(1, 100000))
      ->type_name("N");
  sub->add_flag("--no-expect", raw.no_expect,
                "judge as if the scenario expected a start that passes; gate and allow stay");
  add_soft(sub, raw);
  sub->add_flag("--allow-skip", line.allow_skip, "exit 0 where everything was skipped");
  sub->add_option("--junit", line.junit, "write JUnit XML")->type_name("FILE");
  sub->add_option("--markdown", line.markdown, "write a summary as Markdown, at most 1 MiB")
      ->type_name("FILE");
  sub->add_option("--buildkite", line.buildkite,
                  "write an annotation for buildkite-agent annotate; - = stdout")
      ->type_name("FILE|-");
  sub->add_option("--keep", line.run.keep,
                  "write traces, logs and report into a folder, for `warmgate bundle`")
      ->type_name("DIR");
  sub->add_flag_callback(
         "--github", [&line] { line.github = true; },
         "annotations, and the summary appended to $GITHUB_STEP_SUMMARY; by "
         "default where GITHUB_ACTIONS=true")
      ->excludes(sub->add_flag_callback(
          "--no-github", [&line] { line.github = false; }, "neither"));
}

void add_json(CLI::App* sub, CommandLine& line, const char* what) {
  sub->add_option("--json", line.json, what)->type_name("FILE|-");
}

CLI::Option* add_one_scenario(CLI::App* sub, Raw& raw) {
  return sub->add_option("scenario", raw.scenario, "a scenario's YAML file")->type_name("FILE");
}

namespace {

void add_shrink(CLI::App& app, CommandLine& line, Raw& raw) {
  auto* shrink = app.add_subcommand(
      "shrink", "a model folder without weights, small enough to start in a minute");
  plan::shrink::Request& wish = line.shrink;
  shrink->add_option("--config", wish.config, "a model's config.json")
      ->required()
      ->type_name("FILE");
  shrink->add_option("--out", wish.out, "the folder to write")->required()->type_name("DIR");
  shrink->add_option("--tp", wish.parallel.tp, "ranks of tensor parallelism; default 1")
      ->check(whole(1, 1024))
      ->type_name("N");
  shrink->add_option("--ep", wish.parallel.ep, "ranks that the experts are spread over; default 1")
      ->check(whole(1, 4096))
      ->type_name("N");
  shrink->add_option("--memory", raw.memory, "of one GPU or slice; default 16GiB")
      ->type_name("BYTES");
  shrink->add_option("--experts", wish.experts, "keep so many; default the fewest that route alike")
      ->check(whole(1, plan::shrink::kMostExperts))
      ->type_name("N");
  shrink->add_option("--per-kind", wish.per_kind, "layers of each kind and role; default 1")
      ->check(whole(1, plan::shrink::kMostLayers))
      ->type_name("N");
  shrink->add_option("--tokenizer", raw.tokenizer, "stub: write one that knows bytes; default none")
      ->check(unnamed(CLI::IsMember({"none", "stub"})))
      ->type_name("none|stub");
  shrink->add_flag("--force", wish.force, "write into a folder that is not empty");
  shrink->add_option("--scenario", wish.scenario, "write a gate scenario for it as well")
      ->type_name("FILE");
  shrink->add_option("--preset", wish.preset, "the server of that scenario; default vllm")
      ->type_name("NAME");
  add_json(shrink, line, kJsonResult);
  shrink->footer(
      "0 written, 1 the weights do not fit into --memory (nothing written), 2 a config that is not "
      "understood.\n"
      "Examples:\n"
      "  warmgate shrink --config config.json --out /tmp/small --tokenizer stub\n"
      "  warmgate shrink --config config.json --out /tmp/small --tp 2 --ep 2 --memory 24GiB");
}

void add_bundle(CLI::App& app, CommandLine& line, Raw& raw) {
  auto* bundle = app.add_subcommand("bundle", "pack a run into one file that repeats it elsewhere");
  bundle->add_option("run", raw.scenario, "a folder that --keep wrote, or a JSON report")
      ->required()
      ->type_name("RUN");
  bundle
      ->add_option("-o,--output", line.output, "default: SCENARIO-VERB.tar.gz; .tar.zst, .tar too")
      ->type_name("FILE");
  bundle->add_option("--with", raw.with, "what is else left out: caches, cores, prompts")
      ->type_name("NAMES")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_json(bundle, line, kJsonResult);
  bundle->footer(
      "Secrets are masked in all of it: variables, arguments, URLs, tokens that show by their "
      "shape.\n"
      "`warmgate run FILE` repeats a bundle with the same options.\n"
      "Examples:\n"
      "  warmgate ab FILE --keep kept; warmgate bundle kept -o regression.tar.gz\n"
      "  warmgate bundle report.json                  # without traces\n"
      "  warmgate run regression.tar.gz --variant B");
}

void add_probes(CLI::App& app, CommandLine& line, Raw&) {
  auto* probes =
      app.add_subcommand("probes", "Kubernetes probe values from the clocks of measured starts");
  probes->add_option("runs", line.paths, "JSON reports, or folders that --keep wrote")
      ->required()
      ->type_name("RUN…");
  probes->add_option("--variant", line.variant, "whose starts, where there are several")
      ->type_name("NAME");
  auto* check = probes->add_option("--check", line.manifest,
                                   "a manifest: 1 if a start takes longer than it allows");
  check->type_name("FILE");
  probes->add_option("--container", line.container, "which, where several have probes")
      ->type_name("NAME")
      ->needs(check);
  add_json(probes, line, kJsonResult);
  probes->footer(
      "0 done, 1 --check found a budget that is too short, 2 what cannot be read, 4 no clock.\n"
      "Examples:\n"
      "  warmgate run FILE --variant B --repeat 20 --json starts.json\n"
      "  warmgate probes starts.json\n"
      "  warmgate probes monday.json tuesday.json --check deployment.yaml --container vllm");
}

}  // namespace

void add_tools(CLI::App& app, CommandLine& line, Raw& raw) {
  // Commands that look at one scenario and judge nothing.
  const auto look = [&](const char* name, const char* about, bool kernels, const char* footer) {
    auto* sub = app.add_subcommand(name, about);
    add_one_scenario(sub, raw)->required();
    add_variants(sub, raw);
    add_scenario_choices(sub, line);
    if (kernels) add_kernels(sub, line, raw);
    add_json(sub, line, kJsonResult);
    sub->footer(footer);
    return sub;
  };
  look("resolve", "print every value of a scenario and its origin", false,
       "Examples:\n"
       "  warmgate resolve FILE --variant B\n"
       "  warmgate resolve FILE --json - | jq '.variants[0].ranks[0].limits'");
  look("plan", "memory a phase, cache groups, capacity, workspace", true,
       "Examples:\n"
       "  warmgate plan scenarios/seeds/dspark-absent-topk-buffer.yaml --variant B\n"
       "  warmgate plan FILE --set limits.max_model_len=131072 --json -");
  look("keys", "compile keys: asked for, compiled, reachable, launched, invalid", true,
       "Examples:\n"
       "  warmgate keys scenarios/seeds/zero-compress-ratio-warmup-key.yaml\n"
       "  warmgate keys FILE --variant A --jit host --json -")
      ->add_flag("-v,--verbose", raw.verbose, "also the keys of which nothing is to be said");

  auto* accept = app.add_subcommand("accept", "write the sets and counts of a run as accepted");
  add_one_scenario(accept, raw);
  accept->add_option("--report", line.report, "take a run's or gate's JSON report instead")
      ->type_name("FILE");
  add_variants(accept, raw);
  add_running(accept, line, raw);
  accept
      ->add_option("-o,--output", line.output,
                   "default: SCENARIO.accepted.json beside each; a folder for several scenarios")
      ->type_name("FILE|DIR");
  accept->footer(
      "Examples:\n"
      "  warmgate accept FILE && git diff\n"
      "  warmgate gate scenarios --json out.json; warmgate accept --report out.json");

  add_shrink(app, line, raw);
  add_explain(app, line, {raw.soft, raw.quiet, raw.verbose});

  add_watch(app, line, {raw.timeout, raw.quiet});
  add_bundle(app, line, raw);
  add_probes(app, line, raw);

  auto* schema = app.add_subcommand("schema", "print the JSON Schema of the scenario language");
  schema->footer("Example:\n  warmgate schema > scenario.schema.json");

  auto* doctor = app.add_subcommand("doctor", "what can be observed on this machine, and what not");
  add_kernels(doctor, line, raw);
  add_json(doctor, line, kJsonResult);
  doctor
      ->add_option("--target", line.target_preset,
                   "of one engine: contract by channel, and what is missing here")
      ->type_name("PRESET");
  doctor->footer("Examples:\n  warmgate doctor --json -\n  warmgate doctor --target vllm");

  const CLI::Validator not_empty(
      [](const std::string& text) { return text.empty() ? "an empty word" : ""; }, "");
  for (CLI::App* sub : app.get_subcommands({})) {
    add_colour(sub, raw);
    for (CLI::Option* option : sub->get_options()) {
      if (option->get_items_expected_max() > 0) option->check(not_empty);
    }
  }
}

}  // namespace warmgate::cli::parts
