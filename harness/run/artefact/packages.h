// What is installed in a Python environment, read from the metadata that installers leave. Nothing
// of it is imported or run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/verdict/artefact.h"

namespace warmgate::run {

/// A virtual environment, as its files say.
struct Venv {
  std::filesystem::path root;           // canonical
  std::filesystem::path python;         // bin/python, through links: the file that runs
  std::string version;                  // of Python, from pyvenv.cfg; "" = not told
  std::filesystem::path site_packages;  // of its own
  bool sees_system = false;             // include-system-site-packages
};

/// Throws std::runtime_error that names the folder and what makes it no virtual environment.
Venv read_venv(const std::filesystem::path& root);

/// True if the folder has a pyvenv.cfg: it claims to be one.
bool looks_like_venv(const std::filesystem::path& root);

/// A distribution and what its RECORD lists, for those who look for its files.
struct Installed {
  verdict::Package package;
  std::filesystem::path info;      // its .dist-info or .egg-info
  std::vector<std::string> files;  // relative to site-packages, as RECORD has them; "" for none
};

/// Every distribution of a site-packages, by name. Broken ones are there with what they tell: a
/// folder without METADATA has the name and version of its own name. Digests leave out what depends
/// on where it was installed (scripts, compiled bytecode, installer's notes). A file counts as
/// changed if it was written after RECORD or has another size, and its hash is not RECORD's.
std::vector<Installed> read_installed(const std::filesystem::path& site_packages);
std::vector<verdict::Package> packages_of(const std::vector<Installed>& installed);

/// SHA-256 over names, versions, digests, origins of editable ones, and changed files.
std::string packages_hash(const std::vector<verdict::Package>& packages);

/// The distribution that a command comes from: owner of the script argv[0], or of the module after
/// `-m`. Null if none says so.
const Installed* owner_of(const std::vector<Installed>& installed,
                          const std::vector<std::string>& argv);
/// By name, in any spelling; null if it is not installed.
const Installed* find_installed(const std::vector<Installed>& installed, std::string_view name);

}  // namespace warmgate::run
