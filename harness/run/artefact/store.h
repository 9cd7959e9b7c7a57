// Where built artefacts are kept: one folder each, named by the hash of what it is made from, built
// once, shared by all warmgates of this user. A build happens under a lock; an entry that is
// incomplete or damaged is built anew.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/run/run_dir.h"
#include "harness/target/machine_lock.h"
#include "harness/target/target.h"

namespace warmgate::run {

/// $WARMGATE_ARTEFACT_CACHE, else $XDG_CACHE_HOME/warmgate/artefacts, else
/// ~/.cache/warmgate/artefacts, else "".
std::filesystem::path default_artefact_cache();

/// What an entry is made from and how.
struct Recipe {
  std::string kind;          // venv tree wheel: part of the folder's name
  nlohmann::json made_from;  // everything that decides about the contents
  std::string what;          // for progress and messages: "wheel dist/a.whl"
  /// Fills the folder (empty, its final place: environments are not movable) and returns the facts
  /// that a later call holds it against. `log` is beside the folder. May throw.
  std::function<nlohmann::json(const std::filesystem::path& folder,
                               const std::filesystem::path& log)>
      build;
  /// "" if the folder still is what `facts` say, else what is wrong with it. May throw.
  std::function<std::string(const std::filesystem::path& folder, const nlohmann::json& facts)>
      damage;
};

/// An entry in use. While one lives no warmgate rebuilds the folder.
struct Entry {
  std::filesystem::path folder;
  nlohmann::json facts;
  bool built = false;  // by this call
  std::string note;    // why it was built anew; "" = it was there, or never before
  UniqueFd lock;
};

/// What happens, in words: "builds wheel a.whl", "waits for another warmgate that builds …".
using BuildProgress = std::function<void(const std::string&)>;

class Store {
 public:
  /// The folder is made when the first entry is. `rebuild`: entries are built anew, once a Store.
  Store(std::filesystem::path root, bool rebuild, const target::CancelToken& cancel,
        BuildProgress progress = {});

  /// Throws BuildError: what failed with its last lines, a folder that cannot be written, a cancel.
  std::shared_ptr<const Entry> get(const Recipe& recipe);

  void report_to(BuildProgress progress) { progress_ = std::move(progress); }
  const target::CancelToken& cancel() const { return cancel_; }
  /// Held while something is built: nobody measures beside it. Null where the machine's lock cannot
  /// be used. Throws BuildError at a cancel, and when the machine does not become free.
  std::shared_ptr<target::MachineLock> machine() const;
  void say(const std::string& what) const;

 private:
  std::shared_ptr<Entry> open(const Recipe& recipe, const std::string& name);
  void lock(int fd, int how, const std::string& what) const;
  bool lock_alone(int fd, const std::string& what, int waits) const;
  nlohmann::json make(const Recipe& recipe, const std::filesystem::path& folder) const;

  std::filesystem::path root_;
  bool rebuild_;
  const target::CancelToken& cancel_;
  BuildProgress progress_;
  std::map<std::string, std::shared_ptr<const Entry>> opened_;
};

}  // namespace warmgate::run
