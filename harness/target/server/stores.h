// Cache stores: put into the asked state before a start, and the state that was really reached.
// Nothing outside of folders that warmgate made is ever changed or removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/target/server/preset.h"
#include "harness/trace/event.h"

namespace warmgate::target {

struct StoresSpec {
  std::vector<CacheStore> stores;  // the preset's
  /// Store → cold: a fresh folder · warm: the one that warmgate keeps for `kept_key`, filled by an
  /// earlier run · an absolute path: that folder, in place · copy:PATH: a copy of it. Stores that
  /// are not named stay where they are. page_cache (of `model`): cold or warm.
  std::map<std::string, std::string> asked;
  std::filesystem::path run_dir;  // cold and copied stores live in run_dir/stores
  std::filesystem::path kept;     // "" = kept_folder(env)
  /// What a warm store is kept for: artefact and machine, so that two artefacts never warm each
  /// other. Letters, digits, . _ - only.
  std::string kept_key;
  std::map<std::string, std::string> env;    // what the members would inherit: HOME, TMPDIR …
  std::vector<std::filesystem::path> model;  // files and folders that page_cache is about
  /// The engine runs in a container or on another machine: its stores are not here, and no variable
  /// of ours reaches it.
  bool elsewhere = false;
};

struct PreparedStore {
  std::string name;
  std::string asked;  // "" = not asked for
  std::string found;  // cold: empty or absent | warm: it holds files | part (page_cache) | unknown
  bool reached = true;              // the state asked for, where one was
  std::string note;                 // why it was not reached, or what to know
  std::filesystem::path folder;     // where the engine will keep it; "" if that is not known
  std::filesystem::path elsewhere;  // its default place, where it must not go now; "" = none
  std::uint64_t files = 0, bytes = 0;
  bool counted_all = true;  // false: there is more than was counted
  bool compiled = false;    // what appears in it after ready is a compilation
  bool downloads = false;   // what appears in it during the run was fetched meanwhile
  std::vector<std::string> ignore;
};

struct PreparedStores {
  std::vector<PreparedStore> stores;       // every store of the preset, and page_cache if asked for
  std::map<std::string, std::string> env;  // to be set for every member
  std::vector<std::string> problems;  // the scenario is wrong: an unknown store, no such folder
  /// `store` {store, path, status: prepared, state_asked, state_found, reached, files, bytes,
  /// counted_all, note} of each store that was asked for or holds something.
  std::vector<trace::Event> events(std::int64_t t_ns) const;
};

/// Makes folders and copies, evicts pages, counts. Throws std::filesystem_error where the machine
/// is at fault (disk full, no right). Nothing is ever removed.
PreparedStores prepare_stores(const StoresSpec& spec);

/// $XDG_CACHE_HOME/warmgate/stores, else ~/.cache/warmgate/stores.
std::filesystem::path kept_folder(const std::map<std::string, std::string>& env);

/// ~, $NAME, ${NAME} and ${NAME:-else} expanded from `env` (HOME and USER are known without it);
/// "" if a variable is missing.
std::filesystem::path expand_folder(const std::string& folder,
                                    const std::map<std::string, std::string>& env);

}  // namespace warmgate::target
