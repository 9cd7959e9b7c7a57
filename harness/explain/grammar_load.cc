// fixtures/servers/log/*.yaml → GrammarSet. Everything that is wrong is told with its place.
#include <algorithm>
#include <set>
#include <stdexcept>

#include "harness/explain/grammar_read.h"
#include "harness/explain/reader.h"
#include "harness/scenario/files.h"

namespace warmgate::explain {

namespace fs = std::filesystem;
using scenario::Node;
using scenario::NodePtr;
using scenario::Problems;

namespace internal {
namespace {

void check_names(const Grammar& grammar, const Node& root, Problems& problems) {
  std::set<std::string> names;
  for (const LineRule& line : grammar.lines) names.insert(line.name);
  for (const LineRule& line : grammar.lines) {
    if (!line.without.empty() && names.count(line.without) == 0) {
      problems.add(root, "line " + line.name + ": without names no line: " + line.without);
    }
    for (const std::string& figure : line.resets) {
      if (grammar.figure(figure) < 0) {
        problems.add(root, "line " + line.name + ": resets no figure: " + figure);
      }
    }
  }
}

}  // namespace
}  // namespace internal

Grammars::Grammars() {
  static const auto none = std::make_shared<const internal::GrammarSet>();
  set_ = none;
}

Grammars Grammars::load(const std::filesystem::path& folder) {
  using namespace internal;
  if (!available()) throw std::runtime_error(availability());
  Problems problems;
  auto set = std::make_shared<GrammarSet>();
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  std::map<std::string, NodePtr> roots;
  for (const fs::path& file : files) {
    if (NodePtr root = scenario::read_yaml(file, scenario::display(file), problems)) {
      roots[file.stem().string()] = root;
    }
  }
  if (roots.empty()) throw std::runtime_error("no log grammars (*.yaml) in " + folder.string());
  const auto shared = roots.find("common");
  for (const auto& [name, root] : roots) {
    if (name == "common") continue;
    Grammar grammar;
    const int index = static_cast<int>(set->grammars.size());
    // An engine's lines may carry common figures, and its file may say what becomes of them.
    if (shared != roots.end()) read_figures(shared->second->find("figures"), grammar, problems);
    read_grammar(*root, grammar, *set, index, false, problems);
    if (grammar.engine != name)
      problems.add(*root, "engine has to be the name of the file, " + name);
    const std::string engine = grammar.engine;
    if (shared != roots.end()) {
      read_grammar(*shared->second, grammar, *set, index, true, problems);
    }
    grammar.engine = engine;
    check_names(grammar, *root, problems);
    if (const std::string wrong = grammar.patterns.compile(); !wrong.empty())
      problems.add(*root, wrong);
    set->grammars.push_back(std::move(grammar));
  }
  if (shared != roots.end()) {
    read_grammar(*shared->second, set->common, *set, -1, false, problems);
    if (const std::string wrong = set->common.patterns.compile(); !wrong.empty()) {
      problems.add(*shared->second, wrong);
    }
  }
  problems.throw_if_any();
  if (const std::string wrong = set->detect.compile(); !wrong.empty())
    throw std::runtime_error(wrong);
  Grammars out;
  out.set_ = std::move(set);
  return out;
}

Grammars Grammars::standard(const std::filesystem::path& fixtures) {
  return load(scenario::find_fixtures(fixtures) / "servers" / "log");
}

std::vector<std::string> Grammars::engines() const {
  std::vector<std::string> out;
  for (const internal::Grammar& grammar : set_->grammars) out.push_back(grammar.engine);
  return out;
}

}  // namespace warmgate::explain
