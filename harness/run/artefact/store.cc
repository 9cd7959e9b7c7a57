#include "harness/run/artefact/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <system_error>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/files.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kSchema = "artefact/1.0";
constexpr std::size_t kMostFacts = 16 << 20;

// What an entry says of itself once it is complete: beside its folder, so that nothing in the
// folder is ours. Null if it is not complete, or is another's.
std::optional<json> read_facts(const fs::path& file, const json& made_from) {
  const json all = json::parse(read_bounded(file, kMostFacts), nullptr, false);
  if (!all.is_object() || all.value("schema", "") != kSchema) return std::nullopt;
  if (!all.contains("made_from") || all["made_from"] != made_from) return std::nullopt;
  return all.value("facts", json::object());
}

void remove_folder(const fs::path& folder) {
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (!failed) return;
  // A folder without the right to write in it keeps what it holds.
  std::error_code ignored;
  for (auto it = fs::recursive_directory_iterator(folder, ignored);
       !ignored && it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    if (it->is_directory(ignored) && !it->is_symlink(ignored))
      fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
  fs::remove_all(folder, failed);
  if (failed)
    throw BuildError(fmt::format("cannot remove {}: {}", folder.string(), failed.message()));
}

}  // namespace

fs::path default_artefact_cache() {
  for (const auto& [variable, below] : {std::pair{"WARMGATE_ARTEFACT_CACHE", ""},
                                        {"XDG_CACHE_HOME", "warmgate/artefacts"},
                                        {"HOME", ".cache/warmgate/artefacts"}}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0')
      return *below == '\0' ? fs::path(value) : fs::path(value) / below;
  }
  return {};
}

Store::Store(fs::path root, bool rebuild, const target::CancelToken& cancel, BuildProgress progress)
    : root_(std::move(root)), rebuild_(rebuild), cancel_(cancel), progress_(std::move(progress)) {}

void Store::say(const std::string& what) const {
  if (progress_) progress_(what);
}

std::shared_ptr<const Entry> Store::get(const Recipe& recipe) {
  const std::string name =
      recipe.kind + "-" + trace::sha256_hex(recipe.made_from.dump()).substr(0, 20);
  const auto known = opened_.find(name);
  if (known != opened_.end()) return known->second;
  return opened_[name] = open(recipe, name);
}

// Polled, so that a cancel is prompt; whoever holds it builds, which takes seconds to minutes.
void Store::lock(int fd, int how, const std::string& what) const {
  for (int round = 0; ::flock(fd, how | LOCK_NB) != 0; ++round) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw BuildError(fmt::format("cannot lock {}: {}", what, std::strerror(errno)));
    }
    if (cancel_.cancelled()) throw BuildError("interrupted");
    if (round == 2) say("waits for another warmgate that uses " + what);
    pollfd stop{cancel_.fd(), POLLIN, 0};
    ::poll(&stop, 1, round < 5 ? 20 : 200);
  }
}

// For a moment only; several that want it at once part by waiting unequally long.
bool Store::lock_alone(int fd, const std::string& what, int waits) const {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK && errno != EINTR)
    throw BuildError(fmt::format("cannot lock {}: {}", what, std::strerror(errno)));
  if (cancel_.cancelled()) throw BuildError("interrupted");
  if (waits == 20) say("waits for another warmgate that uses " + what);
  thread_local std::minstd_rand random(std::random_device{}());
  pollfd stop{cancel_.fd(), POLLIN, 0};
  ::poll(&stop, 1, 1 + static_cast<int>(random() % (waits < 20 ? 10 : 200)));
  return false;
}

std::shared_ptr<target::MachineLock> Store::machine() const {
  constexpr std::chrono::hours kMostWait{2};
  std::shared_ptr<target::MachineLock> out;
  try {
    out = std::make_shared<target::MachineLock>(
        target::MachineLock::Mode::kShared, "warmgate builds", cancel_, kMostWait,
        [&](const std::string& holder) { say("waits for the machine (" + holder + ")"); });
  } catch (const std::system_error&) {
    return nullptr;  // then nobody can be kept out either
  }
  if (out->held()) return out;
  throw BuildError(cancel_.cancelled()
                       ? "interrupted"
                       : "the machine was not free; it is held by " + out->waited_for());
}

json Store::make(const Recipe& recipe, const fs::path& folder) const {
  const fs::path log = folder.string() + ".log", complete = folder.string() + ".json";
  std::error_code ignored;
  fs::remove(complete, ignored);
  fs::remove(log, ignored);
  remove_folder(folder);
  const auto machine_lock = machine();
  say("builds " + recipe.what);
  try {
    fs::create_directory(folder);
    const json facts = recipe.build(folder, log);
    write_whole(complete,
                json{{"schema", kSchema}, {"made_from", recipe.made_from}, {"facts", facts}}.dump(
                    1, ' ', false, json::error_handler_t::replace) +
                    "\n");
    return facts;
  } catch (...) {
    // The log stays: messages name it.
    fs::remove_all(folder, ignored);
    throw;
  }
}

std::shared_ptr<Entry> Store::open(const Recipe& recipe, const std::string& name) {
  if (root_.empty())
    throw BuildError(
        "there is no place for built environments: neither HOME nor XDG_CACHE_HOME is "
        "set; name one in WARMGATE_ARTEFACT_CACHE");
  std::error_code failed;
  fs::create_directories(root_, failed);
  if (!fs::is_directory(root_, failed))
    throw BuildError(fmt::format("cannot make the folder {}", root_.string()));
  auto entry = std::make_shared<Entry>();
  entry->folder = fs::absolute(root_) / name;
  const fs::path lock_file = entry->folder.string() + ".lock";
  entry->lock = UniqueFd(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!entry->lock.valid())
    throw BuildError(fmt::format("cannot write {}: {}", lock_file.string(), std::strerror(errno)));
  const fs::path complete = entry->folder.string() + ".json";
  const auto wrong_with = [&](std::optional<json>& facts) -> std::string {
    facts = read_facts(complete, recipe.made_from);
    if (!facts) return fs::exists(entry->folder, failed) ? "it was not finished" : "absent";
    return recipe.damage ? recipe.damage(entry->folder, *facts) : "";
  };
  try {
    // Once for the usual case, again after a build: somebody may come in between two locks.
    int waits = 0;
    for (int round = 0; round < 10; ++round) {
      lock(entry->lock.get(), LOCK_SH, recipe.what);
      std::optional<json> facts;
      std::string wrong = wrong_with(facts);
      const bool again = rebuild_ && !entry->built;
      if (wrong.empty() && !again) {
        entry->facts = std::move(*facts);
        return entry;
      }
      if (entry->built)
        throw BuildError(
            fmt::format("{} is damaged as soon as it is built: {}", recipe.what, wrong));
      ::flock(entry->lock.get(), LOCK_UN);
      // Who built it meanwhile goes on to use it: waiting to be alone would be waiting for his end.
      if (!lock_alone(entry->lock.get(), recipe.what, waits++)) {
        --round;
        continue;
      }
      wrong = wrong_with(facts);  // another warmgate may have built it meanwhile
      if (wrong.empty() && !again) continue;
      if (wrong != "absent") entry->note = "built anew: " + (wrong.empty() ? "--rebuild" : wrong);
      make(recipe, entry->folder);
      entry->built = true;
    }
  } catch (const BuildError&) {
    throw;
  } catch (const std::exception& error) {
    throw BuildError(fmt::format("{}: {}", recipe.what, error.what()));
  }
  throw BuildError(fmt::format("{} is built anew by others all the time", recipe.what));
}

}  // namespace warmgate::run
