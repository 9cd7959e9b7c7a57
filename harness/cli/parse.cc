#include "harness/cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>

#include "harness/cli/nearest.h"
#include "harness/cli/parse_explain.h"
#include "harness/cli/values.h"
#include "harness/scenario/scalars.h"

namespace warmgate::cli {
namespace {

constexpr const char* kAbout =
    "warmgate: does the inference engine still start?\n"
    "It starts an engine, watches it through load, profile, kv, warmup, capture, ready and serve, "
    "and\n"
    "says which promise between two phases was broken, with the proof.";

constexpr const char* kFooter =
    "Exit codes of run, ab, gate and explain:\n"
    "  0 PASS   1 FAIL   2 bad usage or scenario   3 INCONCLUSIVE or nothing judged\n"
    "  4 the machine or warmgate was at fault   130 interrupted\n"
    "step: 0 good   1 bad   125 cannot be judged   128 stop the bisection\n"
    "the others: 0 done   2 bad usage or scenario   4 the machine was at fault   130 "
    "interrupted\n\n"
    "`warmgate COMMAND --help` has examples.";

const std::string kDate = "YYYY-MM-DD";

// Whole numbers from least to most, decimal: CLI11 itself also takes 0x10 and 010.
CLI::Validator whole(long least, long most) {
  return CLI::Validator(
      [=](const std::string& text) { return whole_number_error(text, least, most); }, "");
}

// The type's name says it already.
CLI::Validator unnamed(CLI::Validator validator) { return validator.description(""); }

// What CLI11 fills; turned into a CommandLine afterwards.
struct Raw {
  std::string scenario;
  std::vector<std::string> soft, variants, tags, with;
  std::string timeout, jit = "auto", colour = "auto", memory, tokenizer = "none";
  bool no_expect = false, quiet = false, verbose = false;
};

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

constexpr const char* kJsonReport = "write the report as JSON (schema report/1.1); - = stdout";
constexpr const char* kJsonResult = "write the result as JSON; - = stdout";

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

void build(CLI::App& app, CommandLine& line, Raw& raw) {
  auto* run = app.add_subcommand("run", "run one scenario and judge it");
  add_one_scenario(run, raw)->required();
  add_variants(run, raw);
  add_running(run, line, raw);
  add_judging(run, line, raw);
  add_json(run, line, kJsonReport);
  add_detail(run, raw);
  run->footer(
      "Examples:\n"
      "  warmgate run scenarios/seeds/dspark-absent-topk-buffer.yaml\n"
      "  warmgate run FILE --variant A --no-expect      # 1 if A does not start\n"
      "  warmgate run FILE --variant B --repeat 20 --json out.json\n"
      "  warmgate run FILE --set parallel.tp=4 --device meta\n"
      "  warmgate run BUNDLE.tar.gz                     # repeats what `warmgate bundle` packed");

  auto* ab = app.add_subcommand("ab", "compare two variants of a scenario side by side");
  add_one_scenario(ab, raw)->required();
  ab->add_option("sides", line.sides, "the two variants; default the first two")
      ->expected(0, 2)
      ->type_name("A B");
  add_running(ab, line, raw);
  add_judging(ab, line, raw);
  add_json(ab, line, kJsonReport);
  add_detail(ab, raw);
  ab->footer(
      "PASS if the second passed and no gated figure is worse than the first's.\n"
      "Examples:\n"
      "  warmgate ab scenarios/seeds/dspark-absent-topk-buffer.yaml\n"
      "  warmgate ab FILE B C --repeat 5");

  auto* gate = app.add_subcommand("gate", "run many scenarios: files, folders, globs");
  gate->add_option("paths", line.paths, "scenario files, folders, globs")
      ->required()
      ->type_name("PATHS");
  gate->add_option("--tags", raw.tags, "only scenarios with one of these tags")
      ->type_name("NAMES")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  gate->add_option("--changed", line.changed,
                   "only scenarios that these files touch (`touches`, or files of their own): "
                   "paths from the repository's root, - = stdin, @FILE = a file; one a line")
      ->type_name("FILES")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  gate->add_flag("--keep-going", line.keep_going,
                 "run the scenarios that are right even if others are not; the exit code stays 2");
  add_variants(gate, raw);
  add_running(gate, line, raw);
  add_judging(gate, line, raw);
  add_json(gate, line, kJsonReport);
  add_detail(gate, raw);
  gate->footer(
      "Examples:\n"
      "  warmgate gate scenarios/seeds\n"
      "  warmgate gate scenarios --tags quick --jobs 4 --junit report.xml\n"
      "  git diff --name-only origin/main | warmgate gate scenarios --changed -\n"
      "  warmgate gate 'scenarios/**/*.yaml' --soft inconclusive,skip");

  auto* step = app.add_subcommand("step", "judge the tree at hand, in the words of git bisect run");
  add_one_scenario(step, raw)->required();
  add_variants(step, raw);
  auto* id = step->add_option("--fingerprint", line.fingerprint,
                              "the failure that is looked for; another one is 125, not bad");
  id->type_name("ID");
  step->add_option("--like", line.like, "a JSON report with the failure that is looked for")
      ->type_name("FILE")
      ->excludes(id);
  step->add_option("--build", line.build, "shell command to run first; if it fails: 125")
      ->type_name("COMMAND");
  add_running(step, line, raw);
  step->add_option("--repeat", line.run.repeat, "run this often; one failure makes it bad")
      ->check(whole(1, 100000))
      ->type_name("N");
  add_json(step, line, kJsonReport);
  add_detail(step, raw);
  step->footer(
      "0 good, 1 bad, 125 cannot be judged (another failure, or the machine), 128 stop.\n"
      "Examples:\n"
      "  git bisect start BAD GOOD\n"
      "  git bisect run warmgate step gate.yaml --variant A --fingerprint 4f1c2a9b03de\n"
      "  git bisect run warmgate step gate.yaml --like bad.json --build 'ninja -C build'");

  auto* resolve = app.add_subcommand("resolve", "print every value of a scenario and its origin");
  add_one_scenario(resolve, raw)->required();
  add_variants(resolve, raw);
  add_scenario_choices(resolve, line);
  add_json(resolve, line, kJsonResult);
  resolve->footer(
      "Examples:\n"
      "  warmgate resolve FILE --variant B\n"
      "  warmgate resolve FILE --json - | jq '.variants[0].ranks[0].limits'");

  auto* plan = app.add_subcommand("plan", "memory a phase, cache groups, capacity, workspace");
  add_one_scenario(plan, raw)->required();
  add_variants(plan, raw);
  add_scenario_choices(plan, line);
  add_kernels(plan, line, raw);
  add_json(plan, line, kJsonResult);
  plan->footer(
      "Examples:\n"
      "  warmgate plan scenarios/seeds/dspark-absent-topk-buffer.yaml --variant B\n"
      "  warmgate plan FILE --set limits.max_model_len=131072 --json -");

  auto* keys = app.add_subcommand("keys", "compile keys: warmed, reachable, launched, invalid");
  add_one_scenario(keys, raw)->required();
  add_variants(keys, raw);
  add_scenario_choices(keys, line);
  add_kernels(keys, line, raw);
  add_json(keys, line, kJsonResult);
  keys->add_flag("-v,--verbose", raw.verbose, "also the keys of which nothing is to be said");
  keys->footer(
      "Examples:\n"
      "  warmgate keys scenarios/seeds/zero-compress-ratio-warmup-key.yaml\n"
      "  warmgate keys FILE --variant A --jit host --json -");

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

  add_bundle(app, line, raw);
  add_probes(app, line, raw);

  auto* schema = app.add_subcommand("schema", "print the JSON Schema of the scenario language");
  schema->footer("Example:\n  warmgate schema > scenario.schema.json");

  auto* doctor = app.add_subcommand("doctor", "what can be observed on this machine, and what not");
  add_kernels(doctor, line, raw);
  add_json(doctor, line, kJsonResult);
  doctor->footer("Example:\n  warmgate doctor --json -");

  const CLI::Validator not_empty(
      [](const std::string& text) { return text.empty() ? "an empty word" : ""; }, "");
  for (CLI::App* sub : app.get_subcommands({})) {
    add_colour(sub, raw);
    for (CLI::Option* option : sub->get_options()) {
      if (option->get_items_expected_max() > 0) option->check(not_empty);
    }
  }
}

std::string suggestion(const CLI::App& app, const CommandLine& line) {
  const std::vector<std::string> left = app.remaining(true);
  if (left.empty()) return "";
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (app.got_subcommand(const_cast<CLI::App*>(sub))) {
      for (const CLI::Option* option : sub->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
    } else if (line.command.empty()) {
      known.push_back(sub->get_name());
    }
  }
  const auto option = std::find_if(left.begin(), left.end(),
                                   [](const std::string& w) { return w.rfind("-", 0) == 0; });
  const std::string& wrong = option != left.end() ? *option : left.front();
  const std::string name = wrong.substr(0, wrong.find('='));
  const std::string near = nearest(name, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace

Parsed parse(int argc, const char* const* argv) {
  CommandLine line;
  Raw raw;
  CLI::App app(kAbout, "warmgate");
  app.footer(kFooter);
  app.set_version_flag("-V,--version", std::string("warmgate " WARMGATE_VERSION));
  app.require_subcommand(1);
  build(app, line, raw);
  // `step` speaks to git bisect, for which 2 would mean "bad".
  const int usage = argc > 1 && std::string_view(argv[1]) == "step" ? 128 : 2;
  const auto wrong = [&](const std::string& what) {
    return Parsed{std::nullopt, usage, "", "warmgate: " + what + "\n"};
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    if (asked) {
      app.exit(error, out, err);
      return {std::nullopt, 0, out.str(), err.str()};
    }
    if (argc <= 1) return {std::nullopt, usage, "", app.help()};
    const auto used = app.get_subcommands();
    if (!used.empty()) line.command = used.front()->get_name();
    std::string text = error.what();
    const std::string near = suggestion(app, line);
    // CLI11 speaks of a missing subcommand where an unknown word stands in its place.
    if (line.command.empty() && !app.remaining(true).empty())
      text = "unknown command or option '" + app.remaining(true).front() + "'";
    // CLI11 tells what is left from the end; a wrong option's value is not what is wrong.
    if (!line.command.empty() && error.get_name() == "ExtrasError") {
      const std::vector<std::string> left = app.remaining(true);
      const auto option = std::find_if(left.begin(), left.end(),
                                       [](const std::string& w) { return w.rfind("-", 0) == 0; });
      text = option != left.end() ? "unknown option '" + *option + "'"
                                  : "unexpected '" + left.front() + "'";
    }
    const std::string help = line.command.empty() ? "warmgate" : "warmgate " + line.command;
    return wrong(text + near + "\nSee `" + help + " --help`.");
  }
  line.command = app.get_subcommands().front()->get_name();
  // One descriptor, so that what a person reads goes elsewhere.
  for (const char* stdout_path : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
    if (line.json == stdout_path) line.json = "-";
  if (!raw.scenario.empty()) line.paths = {raw.scenario};
  // An unset variable in somebody's script arrives as an empty word.
  static const std::set<std::string> kOneFile = {"run", "ab", "step", "resolve", "plan", "keys"};
  if (line.paths.empty() && kOneFile.count(line.command) > 0)
    return wrong("the scenario is an empty word; name a scenario file\nSee `warmgate " +
                 line.command + " --help`.");
  if (!raw.timeout.empty()) {
    line.run.timeout_s = parse_seconds(raw.timeout);
    if (!line.run.timeout_s)
      return wrong("--timeout: '" + raw.timeout +
                   "' is not a time from 1ms to 2777h; write 90, 90s, 5min or 2h");
  }
  // An empty word passes CLI11's checks where there may be none.
  if (std::count(line.sides.begin(), line.sides.end(), "") > 0)
    return wrong("an empty word is no variant");
  if (!line.sides.empty() && line.sides.size() != 2)
    return wrong("ab takes two variants, or none for the first two");
  if (line.command == "accept" && line.paths.empty() == line.report.empty())
    return wrong("accept takes a scenario to run, or --report with a report of an earlier run");
  std::vector<std::string> soft;
  if (!take_names(raw.soft, soft) || !take_names(raw.variants, line.run.variants) ||
      !take_names(raw.tags, line.tags))
    return wrong("an empty name in a list; write A,B");
  for (const std::string& name : soft) {
    const std::optional<verdict::Verdict> verdict = verdict_of(name);
    if (!verdict) return wrong("--soft: '" + name + "' is none of fail, inconclusive, infra, skip");
    line.soft.insert(*verdict);
  }
  if (!raw.memory.empty()) {
    const auto memory = scenario::read_bytes(raw.memory);
    if (!memory || *memory.value < plan::shrink::kGiB)
      return wrong("--memory: '" + raw.memory + "' is no size from 1GiB on; write 16GiB or 80 GB");
    line.shrink.memory_bytes = *memory.value;
  }
  line.shrink.tokenizer_stub = raw.tokenizer == "stub";
  if (line.command == "bundle" && line.paths.empty())
    return wrong("the run is an empty word; name a folder or a report");
  std::vector<std::string> with;
  if (!take_names(raw.with, with)) return wrong("an empty name in a list; write A,B");
  for (const std::string& name : with) {
    if (name != "caches" && name != "cores" && name != "prompts")
      return wrong("--with: '" + name + "' is none of caches, cores, prompts");
    line.with.insert(name);
  }
  line.run.expect = !raw.no_expect;
  line.run.jit = raw.jit == "nvrtc"  ? jit::Backend::kNvrtc
                 : raw.jit == "host" ? jit::Backend::kHost
                                     : jit::Backend::kAuto;
  line.colour = raw.colour == "always"  ? ColourChoice::kAlways
                : raw.colour == "never" ? ColourChoice::kNever
                                        : ColourChoice::kAuto;
  line.detail = raw.quiet     ? reports::Detail::kQuiet
                : raw.verbose ? reports::Detail::kVerbose
                              : reports::Detail::kNormal;
  return {std::move(line), 0, "", ""};
}

}  // namespace warmgate::cli
