// worktree: a revision as files of ours, with the prebuilt native parts of an installed package.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/files.h"
#include "harness/run/artefact/makers.h"
#include "harness/trace/glob.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::WorktreeSource;

namespace {

constexpr double kGitDeadline_s = 600;

// A hook, an index or a work tree of the caller's (we may be called from a hook) must not be ours.
const std::vector<std::string> kForeign = {"GIT_DIR",
                                           "GIT_WORK_TREE",
                                           "GIT_INDEX_FILE",
                                           "GIT_PREFIX",
                                           "GIT_COMMON_DIR",
                                           "GIT_OBJECT_DIRECTORY",
                                           "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                           "GIT_NAMESPACE",
                                           "GIT_CONFIG_PARAMETERS"};

class Repository {
 public:
  Repository(fs::path folder, const target::CancelToken& cancel)
      : folder_(std::move(folder)), cancel_(cancel) {}

  std::string ask(const std::vector<std::string>& words) const {
    return output_of(step(words), cancel_);
  }
  void run(const std::vector<std::string>& words, const fs::path& log) const {
    BuildStep git = step(words);
    git.log = log;
    run_step(git, cancel_);
  }

  /// The whole hash of a commit; throws where the repository has none by that name.
  std::string commit(const std::string& revision) const {
    try {
      const std::string out =
          ask({"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
      return out.substr(0, out.find('\n'));
    } catch (const BuildError&) {
      if (cancel_.cancelled()) throw;
      throw BuildError(
          fmt::format("{} has no commit {}; fetch it there first (nothing is fetched "
                      "by itself)",
                      folder_.string(), revision));
    }
  }

  const fs::path& folder() const { return folder_; }

 private:
  BuildStep step(const std::vector<std::string>& words) const {
    BuildStep out;
    // No hook of the repository runs, no pager, no question.
    out.argv = {
        "git",           "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", "-C",
        folder_.string()};
    out.argv.insert(out.argv.end(), words.begin(), words.end());
    out.env = {{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_OPTIONAL_LOCKS", "0"}, {"LC_ALL", "C"}};
    out.without = kForeign;
    out.deadline_s = kGitDeadline_s;
    return out;
  }

  fs::path folder_;
  const target::CancelToken& cancel_;
};

Repository open_repository(const MakeContext& context, const std::string& written) {
  const fs::path start = written.empty() ? context.home : place(context, written);
  std::error_code failed;
  if (!fs::is_directory(start, failed))
    throw std::runtime_error(fmt::format("{}: no such folder", start.string()));
  const Repository here(start, context.store.cancel());
  try {
    const std::string common = here.ask({"rev-parse", "--git-dir"});
    (void)common;
  } catch (const BuildError& error) {
    throw BuildError(fmt::format("{} is in no git repository: {}", start.string(), error.what()));
  }
  return here;
}

// Which native parts are there, and what they were built from.
struct Prebuilt {
  Ready environment;
  const Installed* package = nullptr;
  std::vector<Installed> installed;
  fs::path site_packages;
  std::string commit;
};

Prebuilt find_prebuilt(const MakeContext& context, const WorktreeSource& source,
                       const Repository& repository) {
  Prebuilt out;
  Venv venv;
  if (!source.venv.empty()) {
    venv = read_venv(place(context, source.venv));
    out.installed = read_installed(venv.site_packages);
    out.environment = ready_from_venv(venv, out.installed, context.argv, source.package);
  } else {
    out.environment = make_wheel(context, source.wheel);
    venv = read_venv(out.environment.root);
    out.installed = read_installed(venv.site_packages);
  }
  out.site_packages = venv.site_packages;
  for (const std::string& name : {source.package, context.facts.package}) {
    if (out.package == nullptr && !name.empty()) out.package = find_installed(out.installed, name);
  }
  if (!source.package.empty() && out.package == nullptr)
    throw std::runtime_error(
        fmt::format("{} has no package {}", venv.root.string(), source.package));
  if (out.package == nullptr) out.package = owner_of(out.installed, context.argv);
  std::string from = source.built_from;
  if (from.empty() && out.package != nullptr) from = out.package->package.commit;
  if (from.empty() && source.venv.empty()) from = source.wheel.commit;
  if (from.empty()) {
    throw std::runtime_error(
        fmt::format("{} does not say which commit its native parts were built from: give "
                    "worktree.native.built_from",
                    venv.root.string()));
  }
  out.commit = repository.commit(from);
  return out;
}

// The paths that differ between two commits, as git has them.
std::vector<std::string> changed_paths(const Repository& repository, const std::string& from,
                                       const std::string& to) {
  const std::string all = repository.ask({"diff", "--name-only", "-z", "--no-renames",
                                          "--no-ext-diff", "--no-textconv", from, to, "--"});
  std::vector<std::string> out;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool matches(const std::vector<std::string>& globs, const std::string& path) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return trace::glob_match(glob, path); });
}

void refuse_native_changes(const Repository& repository, const Prebuilt& prebuilt,
                           const std::string& commit, const std::vector<std::string>& native) {
  if (prebuilt.commit == commit) return;
  if (native.empty()) {
    throw std::runtime_error(
        "which paths are native is not known, so prebuilt parts cannot be trusted: give "
        "worktree.native_paths, or a server target whose preset has them");
  }
  std::vector<std::string> touched;
  for (const std::string& path : changed_paths(repository, prebuilt.commit, commit)) {
    if (matches(native, path)) touched.push_back(path);
  }
  if (touched.empty()) return;
  throw std::runtime_error(fmt::format(
      "{} differs from {}, which the prebuilt parts come from, in native path{} {}{}: they have to "
      "be built for it",
      commit.substr(0, 12), prebuilt.commit.substr(0, 12), touched.size() == 1 ? "" : "s",
      touched.front(), touched.size() == 1 ? "" : fmt::format(" and {} more", touched.size() - 1)));
}

// RECORD comes from a wheel: a name in it may say anything.
bool stays_inside(const std::string& file) {
  const fs::path path(file);
  return path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

// Links to the native files of the package that the revision does not bring itself. "" or what hid
// them all.
std::size_t link_native(const Prebuilt& prebuilt, const std::vector<std::string>& globs,
                        const fs::path& into) {
  std::size_t linked = 0;
  std::error_code failed;
  for (const std::string& file : prebuilt.package->files) {
    if (!stays_inside(file) || !matches(globs, file)) continue;
    const fs::path from = prebuilt.site_packages / file, to = into / file;
    if (!fs::is_regular_file(from, failed) || fs::exists(to, failed)) continue;
    // A link of the revision must not lead our file elsewhere.
    const fs::path folder = fs::weakly_canonical(to.parent_path());
    const fs::path inside = folder.lexically_relative(fs::canonical(into));
    if (inside.empty() || *inside.begin() == "..") continue;
    fs::create_directories(folder);
    fs::create_symlink(fs::canonical(from), folder / to.filename());
    ++linked;
  }
  return linked;
}

// Installers compile what they install; without this the revision's first start would be slower
// than its second. A file that does not compile (a template, a test) is nobody's fault.
void compile_bytecode(const fs::path& python, const std::vector<fs::path>& folders,
                      const fs::path& log, const Store& store) {
  BuildStep step;
  step.argv = {python.string(), "-m", "compileall", "-q"};
  for (const fs::path& folder : folders) step.argv.push_back(folder.string());
  step.log = log;
  step.deadline_s = kGitDeadline_s;
  try {
    run_step(step, store.cancel());
  } catch (const BuildError&) {
    if (store.cancel().cancelled()) throw;
  }
}

json check_out(const Repository& repository, const std::string& commit, const fs::path& folder,
               const fs::path& log) {
  // git removes what it knows of a work tree only together with its files, or where these are gone:
  // so they are moved away from under it, and nothing of ours stays in the user's repository.
  const fs::path there = folder / "checkout", tree = folder / "tree";
  const auto forget = [&] {
    try {
      repository.run({"worktree", "remove", "--force", there.string()}, log);
    } catch (const BuildError&) { /* it was never added, or the user removed it */
    }
  };
  try {
    repository.run({"worktree", "add", "--detach", "--force", there.string(), commit}, log);
    fs::rename(there, tree);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(there, ignored);
    forget();
    throw;
  }
  forget();
  fs::remove(tree / ".git");
  return json::object();
}

}  // namespace

Ready make_worktree(const MakeContext& context, const WorktreeSource& source) {
  const Repository repository = open_repository(context, source.repo);
  const std::string commit = repository.commit(source.revision);
  std::optional<Prebuilt> prebuilt;
  const std::vector<std::string>& native =
      source.native_paths.empty() ? context.facts.native_paths : source.native_paths;
  std::vector<std::string> files =
      source.native_files.empty() ? context.facts.native_files : source.native_files;
  if (files.empty()) files = {"*.so", "*.so.*"};
  if (source.has_prebuilt()) {
    prebuilt = find_prebuilt(context, source, repository);
    refuse_native_changes(repository, *prebuilt, commit, native);
  }
  std::vector<std::string> folders =
      source.python_path.empty() ? context.facts.python_path : source.python_path;
  if (folders.empty()) folders = {"."};

  Recipe recipe;
  recipe.kind = "tree";
  recipe.made_from = {{"format", 1}, {"commit", commit}, {"python_path", folders}};
  if (prebuilt && prebuilt->package != nullptr) {
    recipe.made_from["native"] = {{"files", files},
                                  {"from", prebuilt->site_packages.string()},
                                  {"digest", prebuilt->package->package.digest}};
  }
  recipe.what = fmt::format("worktree {} ({})", source.revision, commit.substr(0, 12));
  recipe.build = [&](const fs::path& folder, const fs::path& log) {
    check_out(repository, commit, folder, log);
    const fs::path tree = folder / "tree";
    std::size_t linked = 0;
    for (const std::string& each : folders) {
      if (!fs::is_directory(tree / each))
        throw BuildError(fmt::format("{} has no folder {}", commit.substr(0, 12), each));
    }
    if (prebuilt && prebuilt->package != nullptr)
      linked = link_native(*prebuilt, files, tree / folders.front());
    if (prebuilt) {
      std::vector<fs::path> places;
      for (const std::string& each : folders) places.push_back(tree / each);
      compile_bytecode(prebuilt->environment.bin / "python", places, log, context.store);
    }
    return json{{"files", listing_hash(tree)}, {"native", linked}};
  };
  recipe.damage = [](const fs::path& folder, const json& facts) -> std::string {
    return listing_hash(folder / "tree") == facts.value("files", "") ? ""
                                                                     : "its files were changed";
  };
  const auto entry = context.store.get(recipe);

  Ready out;
  if (prebuilt) out = prebuilt->environment;
  out.entries.push_back(entry);
  out.root = entry->folder / "tree";
  out.env["PYTHONPATH"] = "";
  for (const std::string& each : folders)
    out.python_path.push_back((out.root / each).lexically_normal().string());
  verdict::ArtefactIdentity& identity = out.identity;
  identity.path = out.root.string();
  identity.commit = commit;
  if (prebuilt) {
    identity.notes.push_back(fmt::format("environment {}", prebuilt->environment.root.string()));
    identity.notes.push_back(fmt::format("{} prebuilt files of {}", entry->facts.value("native", 0),
                                         prebuilt->commit.substr(0, 12)));
    identity.version.clear();  // that of the package the prebuilt parts come from
  } else {
    identity.packages_why = "the revision has no environment of its own (worktree.native)";
  }
  if (!entry->note.empty()) identity.notes.push_back(entry->note);
  identity.hash =
      trace::sha256_hex(commit + "\n" + (prebuilt ? prebuilt->environment.identity.hash : ""));
  return out;
}

}  // namespace warmgate::run
