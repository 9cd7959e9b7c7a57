// What was started: the identity of an artefact (hash, version, commit, path), what is installed in
// it, and in what two of them differ. Filled by run/, printed by reports.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace warmgate::verdict {

/// One installed Python distribution, as its metadata says.
struct Package {
  std::string name, version;
  std::string digest;  // of its own files, wherever it is installed; "" = not told
  std::string origin;  // path or URL of an editable install or a direct reference; else ""
  std::string commit;  // where it says from which; else ""
  bool editable = false;
  std::vector<std::string> changed;  // files that are not as they were installed
};

struct ArtefactIdentity {
  std::string kind;     // command venv wheel image worktree
  std::string name;     // as the scenario calls it
  std::string path;     // where it is on this machine; of an image its id
  std::string hash;     // of its contents; "" = not observed
  std::string version;  // of the package that the command comes from; "" = not told
  std::string commit;   // "" = not told
  std::string python;   // version of its interpreter; "" = none, or not told
  std::string program;  // the file that argv[0] means; "" = not looked for (images)
  /// Empty = not observed, and why.
  std::optional<std::vector<Package>> packages;
  std::string packages_why;
  /// argv, and the variables that it and the scenario set. Its own folder stands as {artefact},
  /// secrets as [secret N]: equal numbers are equal values within one call.
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::vector<std::string> notes;  // what a person should know of it
};

/// With `packages` as {name: version}, in the order of names; null where they were not observed.
nlohmann::ordered_json to_json(const ArtefactIdentity& identity);

/// "wheel dist/engine-1.1.whl · engine 1.1 · commit 904fae8be1 · sha256 0123456789ab", with `dot`
/// between the parts.
std::string identity_text(const ArtefactIdentity& identity, std::string_view dot = " · ");

/// PEP 503: lower case, runs of -, _ and . as one -.
std::string normal_name(std::string_view package);

struct ArtefactDifference {
  std::string a, b;  // names of the variants
  struct Line {
    std::string what;  // commit package file variable python command contents
    std::string name;
    std::string a, b;  // "" = absent there
  };
  std::vector<Line> lines;                // nothing: the same in all that was looked at
  std::vector<std::string> not_observed;  // what could not be compared, and why
  std::size_t packages = 0;               // compared on both sides
  std::size_t variables = 0;
  bool contents = false;       // both have a hash, and the hashes were compared
  bool same_artefact = false;  // both are one thing, not only alike

  /// Nothing of what the two are was seen on both sides, so that they are alike is not known.
  bool unseen() const { return lines.empty() && packages == 0 && !contents; }
};

/// What b has otherwise than a. Names of variants are the caller's to fill in.
ArtefactDifference artefact_difference(const ArtefactIdentity& a, const ArtefactIdentity& b);
nlohmann::ordered_json to_json(const ArtefactDifference& difference);

}  // namespace warmgate::verdict
