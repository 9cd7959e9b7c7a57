// What a variant is, where two variants differ in more than values: another program, virtual
// environment, wheel, container image or revision. Never part of a run's identity (identity.h): the
// same scenario over two artefacts is the same run of two things.
#pragma once

#include <string>
#include <vector>

namespace warmgate::scenario {

/// A Python wheel that gets a virtual environment of its own. One of path, url, commit.
struct WheelSource {
  std::string path;    // file; relative to the scenario's folder
  std::string url;     // http(s) or file; needs sha256
  std::string commit;  // resolved through `from`, else through the preset's wheel_url
  std::string from;    // URL with {commit} in it
  std::string sha256;  // lower-case hex of the file; "" = not known (path and commit only)
  std::string python;  // interpreter that the environment is made with; "" = python3
  std::vector<std::string> pip;  // more arguments of `pip install`, such as --no-index
};

struct ImageSource {
  std::string name;              // reference: repository:tag or repository@sha256:…
  std::string engine;            // docker | podman; "" = the first of them that is there
  std::vector<std::string> run;  // more arguments of `run`, such as --gpus all
  bool list_packages = false;    // start it once to list its Python packages
};

/// A revision of a repository, checked out into our cache, on PYTHONPATH before everything else.
struct WorktreeSource {
  std::string revision;    // anything git understands as a commit
  std::string repo;        // its repository; "" = the one that the scenario lies in
  std::string venv;        // environment with its dependencies and prebuilt native parts
  WheelSource wheel;       // or the wheel to make that environment from
  std::string built_from;  // commit that these were built from; "" = what the package says itself
  std::string package;     // distribution that holds the native parts; "" = the preset's
  std::vector<std::string> native_paths;  // globs in the repository; empty = the preset's
  std::vector<std::string> native_files;  // globs in the package; empty = the preset's, else *.so
  std::vector<std::string> python_path;   // folders of the repository; empty = its root
  bool has_prebuilt() const {
    return !venv.empty() || !wheel.path.empty() || !wheel.url.empty() || !wheel.commit.empty();
  }
};

struct Artefact {
  enum class Kind { kNone, kCommand, kVenv, kWheel, kImage, kWorktree };
  Kind kind = Kind::kNone;
  std::vector<std::string> command;  // instead of the target's; may go with every kind
  std::string venv;                  // folder; relative to the scenario's
  WheelSource wheel;
  ImageSource image;
  WorktreeSource worktree;
  /// Says nothing of its own: the target is what the scenario starts anyway.
  bool empty() const { return kind == Kind::kNone; }
};

}  // namespace warmgate::scenario
