#include "harness/target/server/stores.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

#include "harness/target/server/page_cache.h"
#include "harness/target/server/tree.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using Env = std::map<std::string, std::string>;

constexpr const char* kPageCache = "page_cache";
constexpr double kMib = 1 << 20;

std::string look_up(const Env& env, const std::string& name) {
  if (const auto it = env.find(name); it != env.end() && !it->second.empty()) return it->second;
  if (name != "HOME" && name != "USER") return "";
  const passwd* user = ::getpwuid(::getuid());
  if (user == nullptr) return "";
  return name == "HOME" ? user->pw_dir : user->pw_name;
}

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A folder of ours that nobody else has: made here, or it is an error.
fs::path fresh_folder(const fs::path& parent, const std::string& name) {
  fs::create_directories(parent);
  for (int i = 0; i < 100; ++i) {
    const fs::path folder = parent / (i == 0 ? name : fmt::format("{}-{}", name, i));
    if (::mkdir(folder.c_str(), 0700) == 0) return folder;
    if (errno != EEXIST)
      throw fs::filesystem_error("a cache store could not be made", folder,
                                 std::error_code(errno, std::generic_category()));
  }
  throw fs::filesystem_error("a cache store could not be made", parent / name,
                             std::make_error_code(std::errc::file_exists));
}

bool plain(const std::string& key) {
  return !key.empty() && key != "." && key != ".." &&
         std::all_of(key.begin(), key.end(),
                     [](char c) { return word(c) || c == '.' || c == '-'; });
}

class Preparation {
 public:
  explicit Preparation(const StoresSpec& spec) : spec_(spec) {}

  PreparedStores run() {
    for (const CacheStore& store : spec_.stores) {
      if (store.name != kPageCache) by_name_[store.name] = &store;
    }
    for (const auto& [name, state] : spec_.asked) {
      if (name != kPageCache && by_name_.count(name) == 0)
        out_.problems.push_back(
            fmt::format("cache: there is no store {}; there are {}", name, known()));
    }
    if (!out_.problems.empty()) return std::move(out_);
    if (spec_.elsewhere) return not_here();
    // Parents first: a store inside another moves with it.
    for (const auto& [name, store] : by_name_) prepare(*store);
    std::vector<PreparedStore> ordered;
    for (const CacheStore& store : spec_.stores) {
      const auto it = done_.find(store.name);
      if (it != done_.end() && !it->second.name.empty()) ordered.push_back(std::move(it->second));
    }
    out_.stores = std::move(ordered);
    if (const auto it = spec_.asked.find(kPageCache); it != spec_.asked.end())
      page_cache(it->second);
    return std::move(out_);
  }

 private:
  PreparedStores not_here() {
    for (const auto& [name, state] : spec_.asked) {
      PreparedStore mine;
      mine.name = name;
      mine.asked = state;
      mine.found = "unknown";
      mine.reached = false;
      mine.note = "the engine runs in a container or elsewhere: set its store in its own command";
      out_.stores.push_back(std::move(mine));
    }
    return std::move(out_);
  }

  std::string known() const {
    std::string names;
    for (const CacheStore& store : spec_.stores) names += store.name + ", ";
    return names + kPageCache;
  }

  PreparedStore& prepare(const CacheStore& store) {
    if (const auto it = done_.find(store.name); it != done_.end()) return it->second;
    PreparedStore& mine = done_[store.name];  // also ends a circle of `below`
    mine.name = store.name;
    mine.ignore = store.ignore;
    mine.compiled = store.holds == "compiled";
    mine.downloads = store.holds == "downloads";
    const PreparedStore* parent = nullptr;
    if (const auto it = by_name_.find(store.below); it != by_name_.end())
      parent = &prepare(*it->second);
    const fs::path present = place(store, parent, true), usual = place(store, parent, false);
    usual_[store.name] = usual;
    const auto asked = spec_.asked.find(store.name);
    if (asked != spec_.asked.end()) mine.asked = asked->second;
    mine.folder = present;
    if (!mine.asked.empty()) {
      move(store, mine, parent);
    } else if (parent != nullptr && moved_.count(parent->name) != 0 && !fixed(store)) {
      moved_.insert(store.name);
    }
    if (moved_.count(store.name) != 0 && !usual.empty() && usual != mine.folder)
      mine.elsewhere = usual;
    count(mine);
    judge(mine, store);
    return mine;
  }

  // Its own variable is in the environment already, so it does not move with its parent.
  bool fixed(const CacheStore& store) const {
    return !store.variable.empty() && spec_.env.count(store.variable) != 0;
  }

  // Where it is now; `now` false: where it would be if nothing had moved it.
  fs::path place(const CacheStore& store, const PreparedStore* parent, bool now) const {
    if (now && fixed(store)) return spec_.env.at(store.variable);
    fs::path folder = expand_folder(store.folder, spec_.env);
    if (parent == nullptr) return folder.is_absolute() ? folder : fs::path();
    const auto it = usual_.find(parent->name);
    const fs::path& around = it == usual_.end() ? parent->folder : it->second;
    if (folder.is_absolute()) {
      const fs::path inside = folder.lexically_relative(around);
      if (!now || inside.empty() || *inside.begin() == "..") return folder;
      folder = inside;
    }
    const fs::path& base = now ? parent->folder : around;
    return base.empty() || folder.empty() ? fs::path() : base / folder;
  }

  void move(const CacheStore& store, PreparedStore& mine, const PreparedStore* parent) {
    const std::string& asked = mine.asked;
    const bool inside = parent != nullptr && moved_.count(parent->name) != 0;
    if (store.variable.empty()) {
      // It lies where its parent lies; that may be what was asked for.
      mine.reached = inside && parent->asked == asked;
      if (inside) moved_.insert(store.name);
      if (!mine.reached)
        mine.note =
            store.below.empty()
                ? "no variable moves this store"
                : fmt::format("it lies inside {}: ask for the same state there", store.below);
      return;
    }
    if (asked == "cold") {
      mine.folder = fresh_folder(spec_.run_dir / "stores", store.name);
      for (const std::string& each : store.set) add_variable(each, mine.folder);
    } else if (asked == "warm") {
      if (!plain(spec_.kept_key)) {
        out_.problems.push_back(fmt::format("cache: {}: warm stores have no legal key: \"{}\"",
                                            store.name, spec_.kept_key));
        return;
      }
      const fs::path kept = spec_.kept.empty() ? kept_folder(spec_.env) : spec_.kept;
      if (!kept.is_absolute()) {
        out_.problems.push_back(
            fmt::format("cache: {}: no place for warm stores is known", store.name));
        return;
      }
      mine.folder = kept / spec_.kept_key / store.name;
      fs::create_directories(mine.folder);
    } else if (!given(store, mine)) {
      return;
    }
    out_.env[store.variable] = mine.folder.string();
    moved_.insert(store.name);
  }

  bool given(const CacheStore& store, PreparedStore& mine) {
    const bool copy = mine.asked.rfind("copy:", 0) == 0;
    const fs::path folder = copy ? mine.asked.substr(5) : mine.asked;
    std::error_code ec;
    if (!folder.is_absolute() || !fs::is_directory(folder, ec)) {
      out_.problems.push_back(fmt::format(
          "cache: {}: {} is neither cold, warm, nor a folder that is there (in place, or "
          "copy:FOLDER)",
          store.name, mine.asked));
      return false;
    }
    mine.folder = folder;
    if (copy) {
      mine.folder = fresh_folder(spec_.run_dir / "stores", store.name);
      copy_tree(folder, mine.folder);
    }
    return true;
  }

  void add_variable(const std::string& assignment, const fs::path& folder) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) return;
    std::string value = assignment.substr(equals + 1);
    if (const auto at = value.find("{folder}"); at != std::string::npos)
      value.replace(at, 8, folder.string());
    out_.env[assignment.substr(0, equals)] = value;
  }

  static void count(PreparedStore& mine) {
    if (mine.folder.empty()) {
      mine.found = "unknown";
      if (mine.note.empty()) mine.note = "its place is not known: a variable is not set";
      return;
    }
    // One that nobody asked about is not worth seconds.
    const TreeCount count =
        count_tree(mine.folder, mine.ignore, mine.asked.empty() ? 20000 : 200000,
                   mine.asked.empty() ? 0.5 : 10);
    mine.files = count.files;
    mine.bytes = count.bytes;
    mine.counted_all = count.complete;
    mine.found = count.files > 0 ? "warm" : "cold";
    // Folders without files make no difference to an engine, but then it is not fresh either.
    if (mine.asked == "cold" && mine.reached && count.entries > 0) {
      mine.reached = false;
      mine.note = "it was not empty";
    }
    std::error_code ec;
    if (!count.complete && count.entries == 0 && fs::exists(mine.folder, ec))
      mine.found = "unknown";
  }

  void judge(PreparedStore& mine, const CacheStore& store) {
    if (mine.asked == "warm" && mine.reached && mine.files == 0) {
      mine.reached = false;
      mine.note = "nothing is kept there yet; this run may fill it";
    }
    if (mine.asked.empty() || store.variable.empty() || !mine.note.empty()) return;
    const auto own = spec_.env.find(store.variable);
    if (own != spec_.env.end() && own->second != mine.folder)
      mine.note = fmt::format("{} was set to {}; it is overridden", store.variable, own->second);
  }

  void page_cache(const std::string& asked) {
    PreparedStore mine;
    mine.name = kPageCache;
    mine.asked = asked;
    if (asked != "cold" && asked != "warm") {
      out_.problems.push_back(
          fmt::format("cache: {}: {} is neither cold nor warm", kPageCache, asked));
      return;
    }
    if (!spec_.model.empty()) mine.folder = spec_.model.front();
    asked == "cold" ? evict_from_page_cache(spec_.model) : read_into_page_cache(spec_.model);
    const PageCache seen = look_at_page_cache(spec_.model);
    mine.files = seen.files;
    mine.bytes = seen.bytes;
    if (seen.bytes == 0) {
      mine.found = "unknown";
      mine.note = "no model file is known";
    } else if (seen.unknown > 0) {
      mine.found = "unknown";
      mine.note = "the kernel tells only the owner of a file which part of it is in memory";
    } else {
      mine.found = seen.share() <= 0.01 ? "cold" : seen.share() >= 0.99 ? "warm" : "part";
    }
    mine.reached = mine.found == asked;
    if (!mine.reached && mine.note.empty())
      mine.note = fmt::format(
          "{:.0f} of {:.0f} MiB are in memory: {}", static_cast<double>(seen.resident) / kMib,
          static_cast<double>(seen.bytes) / kMib,
          asked == "cold" ? "pages in use or of a memory file system stay, and only "
                            "root may drop them"
                          : "there is no room for all");
    out_.stores.push_back(std::move(mine));
  }

  const StoresSpec& spec_;
  std::map<std::string, const CacheStore*> by_name_;
  std::map<std::string, PreparedStore> done_;
  std::map<std::string, fs::path> usual_;  // where they would be if nothing had moved them
  std::set<std::string> moved_;            // away from where they would be
  PreparedStores out_;
};

}  // namespace

fs::path expand_folder(const std::string& folder, const Env& env) {
  std::string out;
  for (std::size_t i = 0; i < folder.size(); ++i) {
    const char c = folder[i];
    if (c == '~' && out.empty() && (i + 1 == folder.size() || folder[i + 1] == '/')) {
      const std::string home = look_up(env, "HOME");
      if (home.empty()) return {};
      out += home;
      continue;
    }
    if (c != '$') {
      out += c;
      continue;
    }
    std::string name, otherwise;
    if (i + 1 < folder.size() && folder[i + 1] == '{') {
      const auto end = folder.find('}', i);
      if (end == std::string::npos) return {};
      name = folder.substr(i + 2, end - i - 2);
      if (const auto dash = name.find(":-"); dash != std::string::npos) {
        otherwise = name.substr(dash + 2);
        name.erase(dash);
      }
      i = end;
    } else {
      while (i + 1 < folder.size() && word(folder[i + 1])) name += folder[++i];
    }
    std::string value = look_up(env, name);
    if (value.empty()) value = expand_folder(otherwise, env).string();
    if (value.empty()) return {};
    out += value;
  }
  return out;
}

fs::path kept_folder(const Env& env) {
  const fs::path base = expand_folder("${XDG_CACHE_HOME:-~/.cache}", env);
  return base.empty() ? fs::path() : base / "warmgate" / "stores";
}

PreparedStores prepare_stores(const StoresSpec& spec) { return Preparation(spec).run(); }

std::vector<trace::Event> PreparedStores::events(std::int64_t t_ns) const {
  std::vector<trace::Event> out;
  for (const PreparedStore& store : stores) {
    if (store.asked.empty() && store.files == 0) continue;
    trace::Event e;
    e.ev = "store";
    e.t_ns = t_ns;
    e.src = "store";
    e.source = "stores";
    e.body.add("store", std::string_view(store.name));
    e.body.add("path", std::string_view(store.folder.native()));
    e.body.add("status", std::string_view("prepared"));
    if (!store.asked.empty()) e.body.add("state_asked", std::string_view(store.asked));
    e.body.add("state_found", std::string_view(store.found));
    if (!store.asked.empty()) e.body.add("reached", store.reached);
    e.body.add("files", static_cast<std::int64_t>(store.files));
    e.body.add("bytes", static_cast<std::int64_t>(store.bytes));
    if (!store.counted_all) e.body.add("counted_all", false);
    if (!store.note.empty()) e.body.add("note", std::string_view(store.note));
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace warmgate::target
