#include "harness/cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>

#include "harness/cli/nearest.h"
#include "harness/cli/parse_parts.h"
#include "harness/cli/values.h"
#include "harness/scenario/scalars.h"

namespace warmgate::cli {
namespace {

using namespace parts;

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
    "the others: 0 done   1 a check of it failed (probes --check, shrink's budget)   2 and 4 as\n"
    "  above   130 interrupted\n\n"
    "`warmgate COMMAND --help` has examples.";

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
      "  warmgate gate scenarios --tags seam --jobs 4 --junit report.xml\n"
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

  add_tools(app, line, raw);  // the last: what all share is added there
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
    if (!line.command.empty() &&
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
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
