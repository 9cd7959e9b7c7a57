#include "reports/github.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/markdown_text.h"
#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Verdict;

// A message is shown in a box of a few lines; the API takes 64 KiB, a title 255 characters.
constexpr std::size_t kMostColumns = 400, kMostMessageLines = 12, kMostTitle = 160;

enum class Level { kError, kWarning, kNotice };

struct Annotation {
  Level level = Level::kError;
  std::string file;  // "" = none
  int line = 0, column = 0;
  std::string title;
  std::vector<std::string> lines;
};

std::string_view word(Level level) {
  return level == Level::kError ? "error" : level == Level::kWarning ? "warning" : "notice";
}

std::string escaped(std::string_view text, std::string_view what) {
  std::string out;
  for (const char c : text) {
    if (what.find(c) != std::string_view::npos)
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out;
}

std::string command(const Annotation& a, const MarkdownText& text) {
  std::string properties;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty())
      properties +=
          fmt::format("{}{}={}", properties.empty() ? "" : ",", name, github_property(value));
  };
  // A name that is not shown as it is would be another file's; without a file no line means a
  // thing.
  if (!a.file.empty() && without_ci_commands(text.clean(a.file, 1000)) == a.file) {
    add("file", a.file);
    if (a.line > 0) add("line", std::to_string(a.line));
    if (a.line > 0 && a.column > 0) add("col", std::to_string(a.column));
  }
  add("title", without_ci_commands(shorten(text.clean(a.title, 2 * kMostTitle), kMostTitle)));
  std::string message;
  for (std::size_t i = 0; i < a.lines.size() && i < kMostMessageLines; ++i)
    message += (i == 0 ? "" : "\n") + text.clean(a.lines[i], kMostColumns);
  if (a.lines.size() > kMostMessageLines)
    message += fmt::format("\nand {} more lines", a.lines.size() - kMostMessageLines);
  if (message.empty()) message = "see the log";  // the runner drops an empty one
  return fmt::format("::{} {}::{}\n", word(a.level), properties,
                     without_ci_commands(github_data(message)));
}

// At most kMostAnnotations of a level; the last of them counts the rest.
std::string commands(const std::vector<Annotation>& all, const MarkdownText& text) {
  std::string out;
  for (const Level level : {Level::kError, Level::kWarning, Level::kNotice}) {
    std::vector<const Annotation*> mine;
    for (const Annotation& a : all) {
      if (a.level == level) mine.push_back(&a);
    }
    const bool too_many = mine.size() > kMostAnnotations;
    const std::size_t shown = too_many ? kMostAnnotations - 1 : mine.size();
    for (std::size_t i = 0; i < shown; ++i) out += command(*mine[i], text);
    if (!too_many) continue;
    Annotation rest{level, "", 0, 0, "warmgate", {}};
    rest.lines.push_back(
        fmt::format("and {} more of this kind; the summary and the log have all of them:",
                    mine.size() - shown));
    for (std::size_t i = shown; i < mine.size(); ++i) rest.lines.push_back(mine[i]->title);
    out += command(rest, text);
  }
  return out;
}

Level level_of(Verdict verdict, const Report& report) {
  if (is_good(verdict)) return Level::kNotice;
  if (verdict == Verdict::kInconclusive || report.soft.count(verdict) > 0) return Level::kWarning;
  return Level::kError;
}

// A note that repeats the run's reason is left out.
std::string check_text(const verdict::Check& check, const verdict::RunRecord* run = nullptr) {
  std::string out = check.what;
  if (!check.expected.empty()) out += ": expected " + check.expected;
  if (!check.seen.empty()) out += (check.expected.empty() ? ": " : ", seen ") + check.seen;
  if (!check.note.empty() && (!run || check.note != run->reason)) out += " (" + check.note + ")";
  return out;
}

// Of several candidates the first that is a file of the repository.
void place(Annotation& a, const std::vector<scenario::Position>& candidates,
           const RepositoryPath& path) {
  for (const scenario::Position& at : candidates) {
    a.file = at.file.empty() ? "" : path(at.file);
    if (a.file.empty()) continue;
    a.line = std::max(at.line, 1);
    a.column = at.column;
    return;
  }
}

Annotation variant_annotation(const Report& report, const ScenarioReport& s, const VariantReport& v,
                              const RepositoryPath& path) {
  Annotation a;
  a.level = level_of(v.verdict.verdict, report);
  place(a, {v.position, s.position, {s.path, 1, 0}}, path);
  const verdict::RunRecord* run = telling_run(v);
  std::string said = disagreement_text(v);
  if (said.empty()) said = run ? outcome_text(*run) : "not run";
  a.title =
      fmt::format("{} {} {}: {}", verdict::to_string(v.verdict.verdict), s.name, v.name, said);
  if (run) {
    for (const contract::Result& result : run->contracts) {
      if (!tells_more(result, *run)) continue;
      for (const FindingGroup& group : group_findings(result.findings)) {
        // Room for what else is to be said.
        if (a.lines.size() < kMostMessageLines / 2)
          a.lines.push_back(result.contract + ": " + proof_text(group, run));
      }
    }
    if (run->outcome != verdict::Outcome::kPassed && !run->reason.empty())
      a.lines.push_back(run->reason);
  }
  for (const verdict::Check& check : v.verdict.checks) {
    if (!is_good(check.verdict) && a.lines.size() + 2 < kMostMessageLines)
      a.lines.push_back(check_text(check, run));
  }
  if (a.lines.empty()) a.lines.push_back(v.verdict.reason);
  if (run && !run->reproduce.empty()) a.lines.push_back("repeat: " + run->reproduce);
  return a;
}

// Where a check of an `allow` entry stands: "allow FILE:LINE".
scenario::Position position_in(const std::string& what) {
  const std::size_t from = what.find(' '), colon = what.rfind(':');
  if (from == std::string::npos || colon == std::string::npos || colon < from) return {};
  const std::string digits = what.substr(colon + 1);
  const bool number =
      !digits.empty() && digits.size() < 8 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) return {};
  return {what.substr(from + 1, colon - from - 1), std::stoi(digits), 0};
}

void add_scenario(const Report& report, const ScenarioReport& s, const RepositoryPath& path,
                  std::vector<Annotation>& out) {
  const std::size_t before = out.size();
  for (const VariantReport& v : s.variants) {
    if (!is_good(v.verdict.verdict)) out.push_back(variant_annotation(report, s, v, path));
  }
  for (const verdict::Check& check : s.checks) {
    if (is_good(check.verdict)) continue;
    Annotation a;
    a.level = level_of(check.verdict, report);
    place(a, {position_in(check.what), s.position, {s.path, 1, 0}}, path);
    a.title = fmt::format("{} {}: {}", verdict::to_string(check.verdict), s.name, check.what);
    a.lines = {check_text(check)};
    out.push_back(std::move(a));
  }
  if (is_good(s.verdict) || out.size() > before) return;
  // A comparison decided, or nothing that has a line of its own.
  Annotation a;
  a.level = level_of(s.verdict, report);
  place(a, {s.position, {s.path, 1, 0}}, path);
  a.title = fmt::format("{} {}", verdict::to_string(s.verdict), s.name);
  a.lines = {s.reason};
  for (const contract::Result& result : s.comparisons) {
    if (result.state != contract::State::kBroken) continue;
    for (const FindingGroup& group : group_findings(result.findings))
      a.lines.push_back(result.contract + ": " + proof_text(group));
  }
  if (!report.command.empty()) a.lines.push_back("repeat: " + report.command);
  out.push_back(std::move(a));
}

// All that was skipped, equal reasons together.
void add_skipped(const Report& report, std::vector<Annotation>& out) {
  std::map<std::string, std::vector<std::string>> whys;
  for (const ScenarioReport& s : report.scenarios) {
    if (s.variants.empty() && s.verdict == Verdict::kSkip) whys[s.reason].push_back(s.name);
    for (const VariantReport& v : s.variants) {
      if (v.verdict.verdict == Verdict::kSkip)
        whys[v.verdict.reason].push_back(s.name + " " + v.name);
    }
  }
  if (whys.empty()) return;
  Annotation a{Level::kNotice, "", 0, 0, "warmgate skipped", {}};
  for (const auto& [why, names] : whys) {
    std::string line;
    for (std::size_t i = 0; i < names.size() && i < 5; ++i) line += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > 5) line += fmt::format(" and {} more", names.size() - 5);
    a.lines.push_back(line + ": " + why);
  }
  out.push_back(std::move(a));
}

}  // namespace

std::string github_data(std::string_view text) { return escaped(text, "%\r\n"); }
std::string github_property(std::string_view text) { return escaped(text, "%\r\n:,"); }

std::string github_annotations(const Report& report, const RepositoryPath& path) {
  std::vector<Annotation> all;
  for (const ScenarioReport& s : report.scenarios) add_scenario(report, s, path, all);
  for (const std::string& error : report.output_errors)
    all.push_back({Level::kError, "", 0, 0, "warmgate", {error}});
  if (report.interrupted)
    all.push_back({Level::kWarning, "", 0, 0, "warmgate", {"interrupted: not all was judged"}});
  add_skipped(report, all);
  return commands(all, MarkdownText(report.secrets));
}

std::string github_annotations(const std::vector<scenario::Problem>& problems,
                               const RepositoryPath& path) {
  std::vector<Annotation> all;
  for (const scenario::Problem& problem : problems) {
    Annotation a;
    a.file = path(problem.file);
    a.line = std::max(problem.line, 1);
    a.column = problem.column;
    a.title = "warmgate: " + (problem.key_path.empty() ? "usage" : problem.key_path);
    a.lines = {a.file.empty() ? problem.file + ": " + problem.message : problem.message};
    all.push_back(std::move(a));
  }
  return commands(all, MarkdownText({}));
}

std::string github_error(std::string_view message) {
  return commands({{Level::kError, "", 0, 0, "warmgate", {std::string(message)}}},
                  MarkdownText({}));
}

}  // namespace warmgate::reports
