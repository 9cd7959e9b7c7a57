// The probes that --probe asks for, put into the environment of what is started.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/target/target.h"

namespace warmgate::run {

/// One thing that --probe puts into every process of a target.
struct InjectedProbe {
  std::string name;   // as --probe takes it
  std::string about;  // one line: what it watches
  /// What is put there, below the folder that holds bin/ and lib/, or fixtures/…; "" = nothing of
  /// ours is loaded.
  std::string file;
  std::string made;  // how a build brings that file, for the message where it is missing
  std::vector<std::string> serves;  // contracts and figures that depend on it
  /// Sets what loads `found` into `worker` of `spec`. A variable of the scenario's own wins:
  /// somebody else's tool is where our probe would go. Null: harness/run/spans.h sees to it.
  void (*put)(const std::filesystem::path& found, const target::TargetSpec& spec,
              target::WorkerSpec& worker);
};

/// What --probe takes, in the order in which they are put.
const std::vector<InjectedProbe>& probes();

/// True if `name` is among what was asked for.
bool asked_for(const std::vector<std::string>& names, std::string_view name);

/// The probe's file beside this program's folder, "" if it is not there.
std::filesystem::path find(const InjectedProbe& probe);

/// What is wrong with these names, one line each: unknown ones, missing files.
std::vector<std::string> wrong_with(const std::vector<std::string>& names);

/// Every worker of `spec` gets what loads the probes of these names, and a folder for their events.
void inject(const std::vector<std::string>& names, target::TargetSpec& spec);

}  // namespace warmgate::run
