// `gate --changed`: which scenarios a set of changed files asks for.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <set>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmgate::cli {

struct ChangedFiles {
  std::filesystem::path root;   // canonical folder that the paths start from
  std::set<std::string> files;  // with slashes, no dots
};

/// The words of --changed: `-` is `in`, `@FILE` a file, anything else paths themselves; one a line,
/// or separated by NUL (git diff -z). Names that git has quoted ("caf\303\251") are unquoted.
/// Relative paths start at the root of the repository around `folder`, as git prints them whatever
/// folder it is called in; without a repository at `folder`. A file need not be there: it may have
/// been deleted. Throws ScenarioError: a list that cannot be read or is empty (more likely a
/// mistake of the caller than a change of nothing), a path that leads out of the repository.
ChangedFiles read_changed(const std::vector<std::string>& words, std::istream& in,
                          const std::filesystem::path& folder);

struct Selection {
  bool runs = false;
  std::string why;  // in words that follow "because"
};

/// A scenario runs if one of `touches` matches a changed file; if a file that it is made of changed
/// (itself, what it extends, presets, behaviours, its accepted sets, the program and arguments of a
/// command), or one of `shared` (metrics, contracts); or if it has no `touches`.
Selection select(const scenario::Scenario& scenario, const ChangedFiles& changed,
                 const std::vector<std::filesystem::path>& shared = {});

}  // namespace warmgate::cli
