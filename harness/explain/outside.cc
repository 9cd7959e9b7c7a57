#include "harness/explain/outside.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <system_error>

#include "harness/explain/entries.h"
#include "harness/scenario/check.h"
#include "harness/scenario/field_makers.h"
#include "harness/scenario/files.h"

namespace warmgate::explain {
namespace {

namespace fs = std::filesystem;
using internal::any_matches;
using internal::text_of;
using internal::texts_of;
using scenario::Field;
using scenario::NodePtr;
using scenario::Type;

const Field& outside_field() {
  using namespace scenario::makers;
  static const Field field = [] {
    Field rule = object(
        "", "one cause outside the engine",
        {required(name("name", "what reports and scripts call it")),
         required(text("reason", "what happened, as a clause")), text("advice", "what to look at"),
         one_or_more("example", "lines of a log that show it", element(Type::kText)),
         required(choice("certainty", "whether the words leave a doubt", {"certain", "likely"})),
         one_or_more("text", "globs over a line", element(Type::kText)),
         one_or_more("function", "globs over the function of the root frame", element(Type::kText)),
         one_or_more("exit", "exit codes that mean it", integer("", "", 0, 255)),
         one_or_more("signal", "signals that mean it", integer("", "", 1, 64)),
         otherwise(boolean("anywhere", "also in lines that no grammar has a place for"), "false")});
    return object("", "causes outside the engine",
                  {required(list("outside", "the causes", std::move(rule)))});
  }();
  return field;
}

std::vector<int> numbers_of(const scenario::Node& node, std::string_view key) {
  std::vector<int> out;
  for (const std::string& text : texts_of(node, key)) out.push_back(std::stoi(text));
  return out;
}

const Moment* first_of(const Reading& reading, std::initializer_list<std::string_view> sorts) {
  const auto it =
      std::find_if(reading.moments.begin(), reading.moments.end(), [&](const Moment& m) {
        return std::find(sorts.begin(), sorts.end(), m.sort) != sorts.end();
      });
  return it == reading.moments.end() ? nullptr : &*it;
}

// Lines of different files have no common order but that of their clocks, which hosts do not share:
// only within one file is "after" a fact.
bool stands_after(const Moment* failure, int source, std::int64_t line) {
  return failure && failure->source == source && line > failure->line;
}

}  // namespace

void OutsideRules::read_folder(const fs::path& folder, scenario::Problems& problems) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::directory_iterator it(folder, error);
  if (error) {
    problems.add(
        scenario::Place{std::make_shared<const std::string>(scenario::display(folder)), 0, 0}, "",
        "cannot be read: " + error.message());
    return;
  }
  for (; !error && it != fs::directory_iterator() && files.size() < 100; it.increment(error)) {
    if (it->path().extension() == ".yaml") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const NodePtr raw = scenario::read_yaml(file, scenario::display(file), problems);
    if (!raw) continue;
    const scenario::Vocabulary vocabulary;
    scenario::Tainted tainted;
    const NodePtr tree =
        scenario::Checker(problems, vocabulary, tainted).check(raw, outside_field());
    const NodePtr list = tree ? tree->find("outside") : nullptr;
    if (!list) continue;
    for (const NodePtr& item : list->items) {
      OutsideRule rule;
      rule.name = text_of(*item, "name");
      rule.reason = text_of(*item, "reason");
      rule.advice = text_of(*item, "advice");
      rule.certain = text_of(*item, "certainty") == "certain";
      rule.text = texts_of(*item, "text");
      rule.examples = texts_of(*item, "example");
      rule.function = texts_of(*item, "function");
      rule.exit_codes = numbers_of(*item, "exit");
      rule.signals = numbers_of(*item, "signal");
      rule.anywhere = text_of(*item, "anywhere") == "true";
      if (rule.text.empty() && rule.exit_codes.empty() && rule.signals.empty()) {
        problems.add(*item, "needs `text`, `exit` or `signal`");
        continue;
      }
      if (std::any_of(rule.text.begin(), rule.text.end(), [](const std::string& glob) {
            return glob.find_first_not_of("*?") == std::string::npos;
          })) {
        problems.add(*item, "a text of * alone matches every line");
        continue;
      }
      rules_.push_back(std::move(rule));
    }
  }
}

std::vector<OutsideCause> OutsideRules::find(const Reading& reading, const Ending& ending) const {
  std::vector<OutsideCause> out;
  const Moment* const cause = first_of(reading, {"cause"});
  const Moment* const fallen = first_of(reading, {"victim", "echo"});
  // Behind a cause it is a consequence. Behind others' complaints alone it may still be what they
  // complain of, if the words leave no doubt: the kernel's line comes late.
  const auto after = [&](const OutsideRule& rule, int source, std::int64_t line) {
    return stands_after(cause, source, line) ||
           (!cause && !rule.certain && stands_after(fallen, source, line));
  };
  const std::string function = reading.fingerprint ? reading.fingerprint->function : "";
  for (const OutsideRule& rule : rules_) {
    const auto code_in = [](const std::vector<int>& codes, const std::optional<int>& code) {
      return code && std::find(codes.begin(), codes.end(), *code) != codes.end();
    };
    std::vector<OutsideCause> found;
    // The root exception itself.
    if (reading.fingerprint && (rule.function.empty() || any_matches(rule.function, function)) &&
        (any_matches(rule.text, reading.message) ||
         any_matches(rule.text, reading.fingerprint->type)))
      found.push_back({&rule, true, cause ? cause->source : 0, cause ? cause->line : 0,
                       reading.message.empty() ? reading.fingerprint->type : reading.message,
                       false});
    for (const Moment& moment : reading.moments) {
      const bool may = moment.sort == "outside" || (rule.anywhere && moment.sort != "noise");
      if (!may || !rule.function.empty() || !any_matches(rule.text, moment.text)) continue;
      found.push_back({&rule, false, moment.source, moment.line, moment.text,
                       after(rule, moment.source, moment.line)});
    }
    if (rule.anywhere) {
      for (const UnplacedLine& line : reading.unplaced_lines) {
        if (!any_matches(rule.text, line.text)) continue;
        found.push_back(
            {&rule, false, line.source, line.line, line.text, after(rule, line.source, line.line)});
      }
    }
    // An exit code says only what no exception has said already.
    if (!cause &&
        (code_in(rule.exit_codes, ending.exit_code) || code_in(rule.signals, ending.signal)))
      found.push_back({&rule, false, -1, 0,
                       ending.signal ? fmt::format("ended by signal {}", *ending.signal)
                                     : fmt::format("exit code {}", *ending.exit_code),
                       false});
    const auto best = std::min_element(found.begin(), found.end(),
                                       [](const OutsideCause& a, const OutsideCause& b) {
                                         return std::make_tuple(a.after_failure, !a.is_root) <
                                                std::make_tuple(b.after_failure, !b.is_root);
                                       });
    if (best != found.end()) out.push_back(*best);
  }
  std::stable_sort(out.begin(), out.end(), [](const OutsideCause& a, const OutsideCause& b) {
    return std::make_tuple(a.after_failure, !a.is_root, !a.rule->certain, a.line) <
           std::make_tuple(b.after_failure, !b.is_root, !b.rule->certain, b.line);
  });
  return out;
}

}  // namespace warmgate::explain
