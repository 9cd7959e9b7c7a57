// Which files under the paths of a command line are scenarios.
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/scenario/problems.h"
#include "harness/scenario/scenario.h"
#include "harness/scenario/text_file.h"
#include "harness/trace/glob.h"

namespace warmgate::scenario {
namespace {

namespace fs = std::filesystem;

bool is_yaml(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

// Has a top-level key `scenario`, or one that was probably meant to be it: a folder whose only
// scenario has a typo in its first word must fail, not be empty. Read by lines, so that files which
// are no YAML are found, and reported, too.
bool is_scenario(const fs::path& path) {
  std::ifstream in;
  if (ends_somewhere(path)) in.open(path);
  if (!in.is_open()) return true;  // loading says why; a gate must not shrink
  std::string line;
  for (std::size_t read = 0; read < kMaxFileBytes && std::getline(in, line); read += line.size()) {
    const std::size_t begin = line.find_first_not_of("\xEF\xBB\xBF{ \"'");
    const std::size_t colon = line.find(':');
    if (begin == std::string::npos || colon == std::string::npos || begin > 4) continue;
    if (begin > 0 && line[0] == ' ') continue;
    std::string key = line.substr(begin, colon - begin);
    while (!key.empty() && (key.back() == ' ' || key.back() == '"' || key.back() == '\'')) {
      key.pop_back();
    }
    if (key.size() <= 12 && nearest(key, {"scenario"})) return true;
  }
  return false;
}

bool hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > 1 && name[0] == '.' && name != "..";
}

// Links to folders are not followed: they may lead round in a circle.
void walk(const fs::path& folder, std::vector<fs::path>& out) {
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error) && hidden(it->path())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(error) && is_yaml(it->path()) && is_scenario(it->path())) {
      out.push_back(it->path());
    } else if (it->is_symlink(error) && is_yaml(it->path()) && !fs::exists(it->path(), error)) {
      out.push_back(it->path());  // a link to nowhere: loading says so, a gate must not shrink
    }
  }
}

std::vector<fs::path> shell_glob(const std::string& pattern) {
  glob_t found{};
  std::vector<fs::path> out;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  return out;
}

// `**`: everything below the part without wildcards, matched as text.
std::vector<fs::path> deep_glob(const std::string& pattern) {
  fs::path base;
  for (const fs::path& part : fs::path(pattern)) {
    if (part.string().find_first_of("*?[") != std::string::npos) break;
    base /= part;
  }
  std::string flat = pattern;
  for (std::size_t at = 0; (at = flat.find("**/", at)) != std::string::npos;)
    flat.replace(at, 3, "*");
  std::vector<fs::path> below, out;
  walk(base.empty() ? "." : base, below);
  for (const fs::path& path : below) {
    const std::string text = base.empty() ? path.lexically_normal().string() : path.string();
    if (trace::glob_match(flat, text)) out.push_back(path);
  }
  return out;
}

// A named file counts whatever it holds (loading it says what is wrong); a folder is searched.
void take(const fs::path& path, bool named, std::vector<fs::path>& out) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    walk(path, out);
  } else if (named || (is_yaml(path) && is_scenario(path))) {
    out.push_back(path);
  }
}

}  // namespace

std::vector<fs::path> find_scenarios(const std::vector<std::string>& paths) {
  Problems problems;
  std::vector<fs::path> found;
  for (const std::string& text : paths) {
    const Place place{std::make_shared<const std::string>(text), 0, 0};
    std::error_code error;
    const std::size_t before = found.size();
    const bool exists = !text.empty() && fs::exists(text, error);
    const bool missing = !error || error == std::errc::no_such_file_or_directory ||
                         error == std::errc::not_a_directory;
    const bool pattern = text.find_first_of("*?[") != std::string::npos;
    if (exists) {
      take(text, true, found);
    } else if (pattern) {
      const bool deep = text.find("**") != std::string::npos;
      for (const fs::path& path : deep ? deep_glob(text) : shell_glob(text)) {
        take(path, false, found);
      }
    }
    if (found.size() > before) continue;
    problems.add(place, "",
                 !exists && !missing   ? error.message()  // a circle of links, a closed folder
                 : !exists && !pattern ? "no such file or folder"
                                       : "no scenario (a .yaml file with the key scenario) in it");
  }
  problems.throw_if_any();
  std::vector<std::pair<fs::path, fs::path>> keyed;
  for (const fs::path& path : found) {
    std::error_code error;
    fs::path canonical = fs::weakly_canonical(path, error);
    keyed.emplace_back(error ? fs::absolute(path) : std::move(canonical), path.lexically_normal());
  }
  std::sort(keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  std::set<fs::path> seen;
  std::vector<fs::path> out;
  for (const auto& [canonical, path] : keyed) {
    if (seen.insert(canonical).second) out.push_back(path);
  }
  return out;
}

}  // namespace warmgate::scenario
