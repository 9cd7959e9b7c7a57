// The artefacts of a call: built before anything is timed, each once, then put on by the processes
// of the variants that asked for them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/run/artefact/store.h"
#include "harness/scenario/scenario.h"
#include "harness/target/target.h"
#include "harness/verdict/artefact.h"

namespace warmgate::run {

/// What is known of an engine's artefacts, from its server preset. All may be empty.
struct ArtefactFacts {
  std::string wheel_url;  // {commit} in it
  std::string package;    // distribution with the native parts
  std::vector<std::string> python_path, native_paths, native_files;
};

/// An artefact that processes can be started from; or why there is none.
struct Ready {
  std::string error;  // one line; "" = it can be started
  verdict::ArtefactIdentity identity;
  std::filesystem::path root;              // {artefact}; "" of images and commands
  std::filesystem::path bin;               // before PATH; "" = none
  std::map<std::string, std::string> env;  // under what the scenario sets
  std::vector<std::string> python_path;    // folders, before those that the scenario sets
  std::vector<std::string> container;      // images: engine and reference, see put_on()
  std::vector<std::string> container_run;  // images: more arguments of run
  std::vector<std::shared_ptr<const Entry>> entries;  // of the store; in use as long as this lives
};

struct ArtefactOptions {
  std::filesystem::path cache;  // "" = default_artefact_cache()
  bool rebuild = false;
  std::filesystem::path fixtures;  // server presets; "" = as scenarios find them
  std::vector<std::string> secrets;
};

class Artefacts {
 public:
  explicit Artefacts(ArtefactOptions options) : options_(std::move(options)) {}

  /// Builds what the variant asks for; what cannot be built is in Ready::error. Nothing to do for
  /// a variant without one. Equal artefacts are made once.
  void make(const scenario::Scenario& scenario, const scenario::Variant& variant,
            const target::CancelToken& cancel, const BuildProgress& progress);
  /// Null where the variant has none, or make() was not called for it.
  const Ready* find(const scenario::Variant& variant) const;

 private:
  ArtefactOptions options_;
  std::map<const scenario::Variant*, Ready> ready_;
  std::unique_ptr<Store> store_;
  std::map<std::string, int> secret_numbers_;  // value → N of [secret N]
};

/// The target with {artefact} filled in.
scenario::Target filled_in(const scenario::Target& target, const Ready& ready);

/// Gives the workers of a run the artefact's program, PATH and variables, or puts them into its
/// container. `name` is the container's, unique on this machine.
void put_on(const Ready& ready, const std::string& name, target::TargetSpec& spec);

/// The command that ends a container by name; empty for other artefacts.
std::vector<std::string> stop_container(const Ready& ready, const std::string& name);

}  // namespace warmgate::run
