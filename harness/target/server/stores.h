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
  std::vector<CacheStore> stores;            // the preset's
  std::map<std::string, std::string> asked;  // store → cold | warm | folder | copy:folder
  std::filesystem::path run_dir;             // cold and copied stores live in run_dir/stores
  /// Where warm stores are kept from run to run; the caller's identity of artefact and machine
  /// belongs into `kept_key`, so that two artefacts never warm each other. "" = kept_folder().
  std::filesystem::path kept;
  std::string kept_key;
  std::map<std::string, std::string> env;  // what the members will inherit: HOME, XDG_CACHE_HOME …
  std::vector<std::filesystem::path> model;  // files that `page_cache` is about
};

struct PreparedStore {
  std::string name, asked;
  std::string
      found;  // cold: it was empty | warm: it held files | none: it does not exist yet | unknown
  bool reached = false;
  std::string note;                 // why it was not reached, or what to know
  std::filesystem::path folder;     // where the engine will keep it
  std::filesystem::path elsewhere;  // its default place, where it must not go now; "" = the same
  std::uint64_t files = 0, bytes = 0;
  bool counted_all = true;  // false: there were more files than were counted
  bool compiled = false;    // what appears in it after ready is a compilation
  std::vector<std::string> ignore;
};

struct PreparedStores {
  std::vector<PreparedStore> stores;       // every store of the preset, asked for or not
  std::map<std::string, std::string> env;  // to be set for every member
  std::vector<std::string> problems;  // an unknown store, a folder that is not there …: usage
  std::vector<trace::Event> events(std::int64_t t_ns) const;  // `store`
};

/// Makes folders and copies, evicts pages, counts. Throws std::system_error only where the machine
/// is at fault (disk full). A store that is not asked for is left where it is, and only counted.
PreparedStores prepare_stores(const StoresSpec& spec);

/// $XDG_CACHE_HOME/warmgate/stores, else ~/.cache/warmgate/stores.
std::filesystem::path kept_folder(const std::map<std::string, std::string>& env);

/// ~ and $NAME, ${NAME} expanded from `env`; "" if a variable is missing.
std::filesystem::path expand_folder(const std::string& folder,
                                    const std::map<std::string, std::string>& env);

}  // namespace warmgate::target
