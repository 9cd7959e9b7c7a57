#include "harness/explain/known.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>

#include "harness/explain/entries.h"
#include "harness/scenario/check.h"
#include "harness/scenario/field_makers.h"
#include "harness/scenario/files.h"
#include "harness/trace/glob.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::explain {
namespace {

namespace fs = std::filesystem;
using internal::text_of;
using internal::texts_of;
using scenario::Field;
using scenario::Node;
using scenario::NodePtr;
using scenario::Problems;
using scenario::Type;

constexpr std::size_t kMostFiles = 2000;

const Field& known_field() {
  using namespace scenario::makers;
  static const Field field = [] {
    const auto globs = [](std::string_view name, std::string_view meaning) {
      return one_or_more(name, meaning, element(Type::kText));
    };
    Field phases = choice("", "", {trace::phases().begin(), trace::phases().end()});
    Field outcomes = choice("", "", {"crashed", "hung", "failed", "incomplete", "passed"});
    return object(
        "", "a known regression",
        {required(name("known", "its name, that of the file")),
         required(text("about", "what goes wrong, in a sentence")),
         required(one_or_more("engine", "vllm, sglang, llamacpp, trtllm, lmdeploy, tgi",
                              element(Type::kName))),
         text("versions", "the versions that have it, e.g. '>=0.10.2 <0.11'"),
         required(object("fingerprint", "what the log of the failed start shows",
                         {globs("type", "exception type, or CUDA error"),
                          globs("message", "text of the root cause"),
                          globs("function", "function of the root frame"),
                          globs("file", "file of the root frame, without its folder"),
                          one_or_more("phase", "where it fails", std::move(phases)),
                          one_or_more("outcome", "how it ends", std::move(outcomes))})),
         text("issue", "OWNER/REPO#NUMBER"), text("fix", "OWNER/REPO#NUMBER that was merged"),
         text("proposed", "OWNER/REPO#NUMBER of a fix that is not merged"),
         text("introduced_by", "OWNER/REPO#NUMBER"),
         text("fixed_in", "the first release that has the fix"),
         text("workaround", "what to do until then"),
         one_or_more("see", "more references: OWNER/REPO#NUMBER or https://…",
                     element(Type::kText)),
         required(text("log", "a log, in a few lines, that this entry recognises")),
         required(text("near_miss", "a log like it that is something else"))});
  }();
  return field;
}

// Nothing asked for fits everything.
bool fits(const std::vector<std::string>& globs, const std::string& text) {
  return globs.empty() || internal::any_matches(globs, text);
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A type may carry the start of its message ("ValueError: To serve …"); a glob without a colon
// means the type alone.
bool type_matches(const std::vector<std::string>& globs, const std::string& type) {
  return fits(globs, type) || fits(globs, type.substr(0, type.find(':')));
}

bool message_matches(const std::vector<std::string>& globs, const Symptom& symptom) {
  if (globs.empty()) return true;
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    const std::string anywhere = "*" + glob + "*";
    return trace::glob_match(anywhere, symptom.type) ||
           std::any_of(symptom.said.begin(), symptom.said.end(),
                       [&](const std::string& said) { return trace::glob_match(anywhere, said); });
  });
}

bool is_reference(const std::string& text) { return !link_of(text, false).empty(); }

}  // namespace

std::string link_of(const std::string& reference, bool pull) {
  if (reference.rfind("https://", 0) == 0) return reference;
  const std::size_t hash = reference.find('#');
  const std::size_t slash = reference.find('/');
  if (hash == std::string::npos || slash == std::string::npos || slash == 0 || slash + 1 >= hash ||
      hash + 1 >= reference.size() || hash + 12 < reference.size())
    return "";
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const auto c = static_cast<unsigned char>(reference[i]);
    const bool fine = i > hash ? std::isdigit(c) != 0
                               : i == hash || i == slash || std::isalnum(c) != 0 || c == '-' ||
                                     c == '_' || c == '.';
    if (!fine) return "";
  }
  return fmt::format("https://github.com/{}/{}/{}", reference.substr(0, hash),
                     pull ? "pull" : "issues", reference.substr(hash + 1));
}

std::size_t Known::precision() const {
  std::size_t out = 0;
  for (const auto* part : {&type, &message, &function, &file, &phase, &outcome})
    out += part->empty() ? 0 : 1;
  return out + (range ? 1 : 0);
}

void KnownSet::read_file(const fs::path& file, Problems& problems) {
  const std::size_t before = problems.size();
  const std::string shown = scenario::display(file);
  const NodePtr raw = scenario::read_yaml(file, shown, problems);
  if (!raw) return;
  const scenario::Vocabulary vocabulary;
  scenario::Tainted tainted;
  const NodePtr tree = scenario::Checker(problems, vocabulary, tainted).check(raw, known_field());
  if (!tree || problems.size() != before) return;
  Known known;
  known.name = text_of(*tree, "known");
  known.where = fmt::format("{}:{}", shown, tree->place.line);
  if (known.name != file.stem().string())
    problems.add(*tree->find("known"),
                 fmt::format("{} is not the name of the file, {}", scenario::shown(known.name),
                             scenario::shown(file.stem().string())));
  known.about = text_of(*tree, "about");
  known.engine = texts_of(*tree, "engine");
  known.fixed_in = text_of(*tree, "fixed_in");
  known.workaround = text_of(*tree, "workaround");
  known.log = text_of(*tree, "log");
  known.near_miss = text_of(*tree, "near_miss");
  known.versions = text_of(*tree, "versions");
  if (const NodePtr node = tree->find("versions")) {
    std::string why;
    known.range = VersionRange::parse(node->text, why);
    if (!known.range) problems.add(*node, why);
  }
  for (const auto& [key, value] :
       {std::pair{"issue", &known.issue}, std::pair{"fix", &known.fix},
        std::pair{"proposed", &known.proposed}, std::pair{"introduced_by", &known.introduced_by}}) {
    const NodePtr node = tree->find(key);
    if (!node) continue;
    *value = node->text;
    if (!is_reference(node->text))
      problems.add(*node, fmt::format("{} is no reference; write OWNER/REPO#NUMBER",
                                      scenario::shown(node->text)));
  }
  known.see = texts_of(*tree, "see");
  for (const std::string& reference : known.see) {
    if (!is_reference(reference))
      problems.add(*tree->find("see"),
                   fmt::format("{} is no reference; write OWNER/REPO#NUMBER or https://…",
                               scenario::shown(reference)));
  }
  if (known.issue.empty() && known.fix.empty() && known.proposed.empty() && known.see.empty())
    problems.add(*tree, "an entry needs a source: `issue`, `fix`, `proposed` or `see`");
  const NodePtr fingerprint = tree->find("fingerprint");
  known.type = texts_of(*fingerprint, "type");
  known.message = texts_of(*fingerprint, "message");
  known.function = texts_of(*fingerprint, "function");
  known.file = texts_of(*fingerprint, "file");
  known.phase = texts_of(*fingerprint, "phase");
  known.outcome = texts_of(*fingerprint, "outcome");
  const auto is_wide = [](const std::vector<std::string>& globs) {
    return globs.empty() || std::any_of(globs.begin(), globs.end(), [](const std::string& glob) {
             return glob.find_first_not_of("*?") == std::string::npos;
           });
  };
  // An exception type or a phase alone would name half of all failures.
  if (is_wide(known.message) && is_wide(known.function) && is_wide(known.file))
    problems.add(*fingerprint,
                 "too wide: name the `message`, the `function` or the `file` as well");
  if (problems.size() != before) return;
  const auto same = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Known& other) { return other.name == known.name; });
  if (same != entries_.end())
    *same = std::move(known);
  else
    entries_.push_back(std::move(known));
}

void KnownSet::read_folder(const fs::path& folder, bool optional, Problems& problems) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::directory_iterator it(folder, error);
  if (error) {
    if (optional && error == std::errc::no_such_file_or_directory) return;
    problems.add(
        scenario::Place{std::make_shared<const std::string>(scenario::display(folder)), 0, 0}, "",
        "cannot be read: " + error.message());
    return;
  }
  for (; it != fs::directory_iterator() && files.size() < kMostFiles; it.increment(error)) {
    if (error) break;
    if (it->path().extension() == ".yaml") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) read_file(file, problems);
}

std::vector<KnownMatch> KnownSet::match(const Symptom& symptom) const {
  std::vector<KnownMatch> out;
  const std::optional<Version> version =
      symptom.version ? Version::parse(*symptom.version) : std::nullopt;
  for (const Known& known : entries_) {
    const bool same =
        is_one_of(known.engine, symptom.engine) && type_matches(known.type, symptom.type) &&
        message_matches(known.message, symptom) && fits(known.function, symptom.function) &&
        fits(known.file, symptom.file) && fits(known.phase, symptom.phase) &&
        (known.outcome.empty() ? symptom.outcome != "passed"
                               : fits(known.outcome, symptom.outcome)) &&
        (!known.range || !version || known.range->holds(*version));
    if (same) out.push_back({&known, !known.range || version.has_value()});
  }
  std::stable_sort(out.begin(), out.end(), [](const KnownMatch& a, const KnownMatch& b) {
    return a.known->precision() > b.known->precision();
  });
  return out;
}

}  // namespace warmgate::explain
