#include "harness/cli/changed.h"

#include <fmt/format.h>

#include "harness/cli/repository.h"
#include "harness/scenario/problems.h"
#include "harness/trace/glob.h"

namespace warmgate::cli {
namespace {

namespace fs = std::filesystem;
using scenario::Scenario;
using scenario::Target;

// A file may be named through links: the link and what it leads to are both what the scenario is
// made of.
void add_file(const fs::path& path, std::vector<fs::path>& out) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  if (error) return;
  const fs::path folder = fs::weakly_canonical(whole.parent_path(), error);
  if (!error) out.push_back(folder / whole.filename());
  const fs::path real = fs::weakly_canonical(whole, error);
  if (!error) out.push_back(real);
}

// The words of a command that are files.
void add_words(const fs::path& folder, const std::vector<std::string>& argv,
               std::vector<fs::path>& out) {
  for (const std::string& word : argv) {
    std::error_code error;
    if (word.empty() || word.size() > 4096) continue;
    if (fs::is_regular_file(folder / word, error)) add_file(folder / word, out);
  }
}

std::vector<fs::path> own_files(const Scenario& scenario) {
  std::vector<fs::path> out;
  add_file(scenario.path, out);
  for (const fs::path& file : scenario.files) add_file(file, out);
  add_file(scenario.accepted_path(), out);
  for (const scenario::Variant& variant : scenario.variants) {
    add_words(scenario.path.parent_path() / variant.target.cwd, variant.target.argv, out);
    if (!variant.target.server) continue;
    for (const scenario::ServerMember& member : variant.target.server->members) {
      add_words(scenario.path.parent_path() / member.cwd, member.argv, out);
      add_words(scenario.path.parent_path() / member.cwd, member.args, out);
    }
  }
  return out;
}

std::string changed_one(const std::vector<fs::path>& files, const ChangedFiles& changed) {
  for (const fs::path& file : files) {
    const std::string path = inside(changed.root, file);
    // A folder in the list (a submodule, or a word of somebody's) stands for all that is in it.
    for (std::string part = path; !part.empty(); part = fs::path(part).parent_path().string())
      if (changed.files.count(part) > 0) return part;
  }
  return "";
}

}  // namespace

Selection select(const Scenario& scenario, const ChangedFiles& changed,
                 const std::vector<fs::path>& shared) {
  if (const std::string own = changed_one(own_files(scenario), changed); !own.empty())
    return {true, own + ", which it is made of, changed"};
  std::vector<fs::path> all;
  for (const fs::path& file : shared) add_file(file, all);
  if (const std::string one = changed_one(all, changed); !one.empty())
    return {true, one + ", which judges every scenario, changed"};
  if (scenario.touches.empty())
    return {true, "it has no touches, so that any change may concern it"};
  for (const std::string& glob : scenario.touches) {
    for (const std::string& file : changed.files) {
      if (trace::glob_match(glob, file) || glob.rfind(file + "/", 0) == 0)
        return {true, fmt::format("{} changed, which its touches match ({})", file, glob)};
    }
  }
  return {false,
          fmt::format("none of {} changed file{} is one of its own or matches its touches ({})",
                      changed.files.size(), changed.files.size() == 1 ? "" : "s",
                      scenario::list_of(scenario.touches))};
}

}  // namespace warmgate::cli
