// Known regressions: public failures with their fix, recognised by the fingerprint of what a log
// shows. One YAML file each in fixtures/known, and in any folder a user names. An entry carries a
// log that it must match and one, a near miss, that it must not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/explain/version.h"
#include "harness/scenario/problems.h"

namespace warmgate::explain {

/// What an entry is held against: the fingerprint of a failed start, as far as its log shows it.
struct Symptom {
  std::string engine;
  std::optional<std::string> version;
  std::string outcome, phase;
  std::string type, function, file;
  /// Lines of the causes, the root exception's own first.
  std::vector<std::string> said;
};

struct Known {
  std::string name;                 // of the file, without .yaml
  std::string about;                // what goes wrong, in a sentence
  std::vector<std::string> engine;  // names of log grammars; any of them
  std::string versions;             // as written; "" = any
  std::optional<VersionRange> range;
  // OWNER/REPO#NUMBER; "" = none. `proposed` is a fix that was not merged when the entry was
  // written.
  std::string issue, fix, proposed, introduced_by;
  std::string fixed_in;  // a release, in words
  std::string workaround;
  std::vector<std::string> see;  // more references or URLs
  // Globs of the fingerprint; a list holds if one of it matches, an empty one always. A message may
  // stand anywhere in a line. Without an outcome the entry is about starts that fail; what leaves a
  // step out in silence and passes has to name that outcome.
  std::vector<std::string> type, message, function, file, phase, outcome;
  std::string log, near_miss;
  std::string where;  // file:line
  /// Parts of the fingerprint that it names: the more, the surer.
  std::size_t precision() const;
};

struct KnownMatch {
  const Known* known = nullptr;
  /// False where the entry is about some versions and the log prints none.
  bool version_seen = true;
};

class KnownSet {
 public:
  /// Reads every *.yaml of a folder, in the order of names. Problems are added, and what is right
  /// is kept. A folder that is not there is a problem unless `optional`. An entry of a later folder
  /// replaces one of the same name.
  void read_folder(const std::filesystem::path& folder, bool optional,
                   scenario::Problems& problems);
  /// Entries that fit, the most precise first. Copies of KnownSet keep their own entries: matches
  /// point into this one.
  std::vector<KnownMatch> match(const Symptom& symptom) const;
  const std::vector<Known>& entries() const { return entries_; }

 private:
  void read_file(const std::filesystem::path& file, scenario::Problems& problems);
  std::vector<Known> entries_;
};

/// vllm-project/vllm#50693 → https://github.com/vllm-project/vllm/pull/50693 (or issues/; GitHub
/// leads from one to the other); what begins with https:// stays; "" for anything else.
std::string link_of(const std::string& reference, bool pull);

}  // namespace warmgate::explain
