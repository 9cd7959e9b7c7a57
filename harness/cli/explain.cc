#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/explain_report.h"
#include "harness/cli/output_file.h"
#include "harness/cli/result_output.h"
#include "harness/explain/input.h"
#include "harness/explain/secrets.h"
#include "harness/explain/skeleton.h"
#include "harness/scenario/files.h"
#include "harness/target/mask.h"
#include "harness/trace/secrets.h"

extern char** environ;

namespace warmgate::cli {
namespace {

// What is read before and held against every log.
struct Knowledge {
  explain::Grammars grammars;
  explain::OutsideRules outside;
  explain::KnownSet known;
};

std::unique_ptr<Knowledge> load_knowledge(const CommandLine& line) {
  auto out = std::make_unique<Knowledge>();
  const std::filesystem::path fixtures = scenario::find_fixtures(line.run.load.fixtures);
  scenario::Problems problems;
  out->outside.read_folder(fixtures / "outside", problems);
  out->known.read_folder(fixtures / "known", false, problems);
  for (const std::string& folder : line.known) out->known.read_folder(folder, false, problems);
  problems.throw_if_any();
  out->grammars = explain::Grammars::standard(line.run.load.fixtures);
  return out;
}

// Logs of several engines are no one start.
void refuse_several_engines(const std::vector<std::string>& logs, const explain::Reading& reading) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_engine;
  for (std::size_t i = 0; i < reading.source_engines.size(); ++i) {
    const std::string& engine = reading.source_engines[i];
    if (engine.empty()) continue;
    auto it = std::find_if(by_engine.begin(), by_engine.end(),
                           [&](const auto& item) { return item.first == engine; });
    if (it == by_engine.end()) it = by_engine.insert(it, {engine, {}});
    it->second.push_back(logs[i]);
  }
  if (by_engine.size() < 2) return;
  std::string text;
  for (const auto& [engine, names] : by_engine)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", fmt::join(names, " and "), engine);
  throw explain::InputError(fmt::format(
      "these are logs of different engines, not of one start: {}; hold two starts against each "
      "other with `warmgate explain {} --against {}`, or name the engine of all with --engine",
      text, by_engine[1].second.front(), by_engine[0].second.front()));
}

// What no grammar has a place for is no log of a start, whatever else it is. A process that ended
// may have said nothing that anybody knows: then the end is what there is to judge.
void refuse_what_is_no_log(const std::vector<std::string>& logs, const explain::Reading& reading,
                           const explain::Ending& ending, const std::string& engine) {
  if (reading.placed + reading.serving > 0) return;
  const auto& engines = reading.source_engines;
  const bool recognised = std::any_of(engines.begin(), engines.end(),
                                      [](const std::string& name) { return !name.empty(); });
  if (engine.empty() && recognised) return;
  const std::string name = logs.front() == "-" ? "stdin" : logs.front();
  const std::string all = logs.size() > 1 ? fmt::format("{} and the others", name) : name;
  if (reading.unplaced == 0)
    throw explain::InputError(fmt::format("{}: blank: there is no log in it", all));
  if (ending.exit_code || ending.signal) return;
  throw explain::InputError(fmt::format("{}: no log of {}: not one of {} lines is known", all,
                                        engine.empty() ? "an engine that warmgate reads" : engine,
                                        reports::grouped(reading.unplaced)));
}

// The logs of one start: its ranks, pods or members.
Explained read_start(const std::vector<std::string>& logs, const Knowledge& knowledge,
                     const explain::Ending& ending, const std::string& engine) {
  Explained out;
  explain::Reader reader(knowledge.grammars, {engine});
  explain::LaunchFinder finder;
  std::vector<std::unique_ptr<explain::Input>> inputs;
  // All are opened first: a name that is wrong is said before minutes of reading.
  for (const std::string& log : logs) inputs.push_back(std::make_unique<explain::Input>(log));
  std::uint64_t bytes = 0;
  std::vector<char> buffer(1 << 20);
  for (const auto& input : inputs) {
    const int source = reader.add_source(input->name());
    explain::LaunchFinder own;
    while (const std::size_t got = input->read(buffer.data(), buffer.size())) {
      const std::string_view piece(buffer.data(), got);
      own.feed(piece);
      reader.feed(source, piece);
    }
    finder.adopt(std::move(own));
    bytes += input->bytes();
    if (!input->trouble().empty())
      out.troubles.push_back(input->name() + ": " + input->trouble());
    else if (input->bytes() == 0 && inputs.size() > 1)
      out.troubles.push_back(input->name() + ": empty");
  }
  if (bytes == 0)
    throw explain::InputError(inputs.front()->name() +
                              (out.troubles.empty()
                                   ? ": empty: there is no log in it"
                                   : ": nothing could be read: " + out.troubles.front()));
  out.reading = reader.finish(ending);
  refuse_several_engines(logs, out.reading);
  refuse_what_is_no_log(logs, out.reading, ending, engine);
  out.launch = finder.take(out.reading.engine);
  out.answer = explain::answer_of(out.reading, ending, knowledge.outside, knowledge.known);
  return out;
}

verdict::Verdict verdict_of(const explain::Answer& answer) {
  using Kind = explain::Answer::Kind;
  switch (answer.kind) {
    case Kind::kStarts:
      return verdict::Verdict::kPass;
    case Kind::kIncomplete:
      return verdict::Verdict::kInconclusive;
    case Kind::kInfrastructure:
      // A doubt is no reason to start again and hope.
      return answer.certain ? verdict::Verdict::kInfra : verdict::Verdict::kFail;
    case Kind::kMine:
    case Kind::kKnown:
    case Kind::kUnclear:
      return verdict::Verdict::kFail;
  }
  return verdict::Verdict::kFail;
}

int code_of(verdict::Verdict verdict, const CommandLine& line) {
  if (line.soft.count(verdict) > 0) return 0;
  switch (verdict) {
    case verdict::Verdict::kPass:
      return 0;
    case verdict::Verdict::kInfra:
      return 4;
    case verdict::Verdict::kInconclusive:
    case verdict::Verdict::kSkip:
      return 3;
    case verdict::Verdict::kFail:
      return 1;
  }
  return 1;
}

explain::Ending ending_of(const CommandLine& line) {
  explain::Ending ending;
  if (!line.ended) return ending;
  // A shell and a container runtime write 128 + N for signal N.
  if (*line.ended > 128 && *line.ended <= 128 + 64)
    ending.signal = *line.ended - 128;
  else
    ending.exit_code = *line.ended;
  return ending;
}

std::vector<std::string> secrets_of(const Explanation& explanation) {
  std::vector<std::string> out = target::collect_secrets(environ);
  for (const std::string& text : foreign_texts(explanation)) {
    trace::find_secrets(text, out);
    // And by the name beside it, in the free text of a log.
    for (std::string& secret : explain::secrets_in(text, target::is_secret_name))
      out.push_back(std::move(secret));
  }
  std::sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

int explain_command(const CommandLine& line, Console& console) {
  if (!explain::available()) {
    console.complain("explain is not available in this build: " + explain::availability());
    return 4;
  }
  const std::unique_ptr<Knowledge> knowledge = load_knowledge(line);
  const std::vector<std::string> engines = knowledge->grammars.engines();
  if (!line.engine_name.empty() &&
      std::find(engines.begin(), engines.end(), line.engine_name) == engines.end()) {
    console.complain(fmt::format("--engine: no log grammar {}; there are {}",
                                 scenario::shown(line.engine_name), scenario::list_of(engines)));
    return 2;
  }
  const explain::Ending ending = ending_of(line);
  Explanation all;
  all.logs = line.paths;
  all.end_known = line.ended.has_value();
  try {
    if (!line.against.empty())
      all.other = read_start(line.against, *knowledge, {}, line.engine_name);
    all.start = read_start(line.paths, *knowledge, ending, line.engine_name);
  } catch (const explain::InputError& error) {
    console.complain(error.what());
    return 2;
  }
  if (all.other) all.comparison = explain::compare(all.other->reading, all.start.reading);
  const std::vector<std::string> secrets = secrets_of(all);
  if (!line.skeleton.empty()) {
    // Word by word: a shape that spans words would eat the quotes between them.
    explain::Launch launch = all.start.launch;
    for (std::string& word : launch.args) word = target::mask(word, secrets);
    launch.model = target::mask(launch.model, secrets);
    explain::Reading reading = all.start.reading;
    if (reading.fingerprint)
      reading.fingerprint->type = target::mask(reading.fingerprint->type, secrets);
    const std::string text =
        reports::yaml_shown_safely(explain::skeleton(reading, launch, line.paths.front()));
    if (line.skeleton == "-") {
      console.out(text);
      return code_of(verdict_of(all.start.answer), line);
    }
    write_file(line.skeleton, text);
    all.skeleton = line.skeleton;
  }
  return deliver_result(explanation_json(all, secrets),
                        explanation_text(all, console.out_style(), line.detail, secrets),
                        code_of(verdict_of(all.start.answer), line), line, console);
}

}  // namespace warmgate::cli
