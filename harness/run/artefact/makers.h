// One maker for each kind of artefact. Each throws std::exception with one line for a person.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/run/artefact/artefacts.h"
#include "harness/run/artefact/packages.h"
#include "harness/run/artefact/store.h"
#include "harness/scenario/artefact.h"

namespace warmgate::run {

struct MakeContext {
  Store& store;
  std::filesystem::path home;     // the scenario's folder: relative paths begin there
  std::filesystem::path cwd;      // where the command will run
  ArtefactFacts facts;            // of the server preset
  std::vector<std::string> argv;  // what will be started
};

Ready make_command(const MakeContext& context);
Ready make_venv(const MakeContext& context, const std::string& path);
Ready make_wheel(const MakeContext& context, const scenario::WheelSource& wheel);
Ready make_image(const MakeContext& context, const scenario::ImageSource& image);
Ready make_worktree(const MakeContext& context, const scenario::WorktreeSource& worktree);

/// The worker's command as one that its container's engine runs. Variables go by name only, so that
/// no value stands in a list of processes.
void put_into_container(const Ready& ready, const std::string& name, const std::string& run_dir,
                        target::WorkerSpec& worker);

/// A path as a scenario writes it: ~/ is the home folder, the rest is relative to the scenario's.
std::filesystem::path place(const MakeContext& context, const std::string& written);

/// What an environment gives to processes and to an identity: bin, variables, Python, packages, the
/// version and commit of the package that the command comes from.
Ready ready_from_venv(const Venv& venv, const std::vector<Installed>& installed,
                      const std::vector<std::string>& argv, const std::string& package);

/// SHA-256 over the program and those of its arguments that are files: what a command is made of.
/// `path` is the PATH that the program is looked up in.
struct ProgramFiles {
  std::string program, hash;
};
ProgramFiles program_files(const std::vector<std::string>& argv, const std::string& path,
                           const std::filesystem::path& cwd);

}  // namespace warmgate::run
