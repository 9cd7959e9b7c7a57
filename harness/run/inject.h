// The probes that --probe asks for, put into the environment of what is started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/target/target.h"

namespace warmgate::run {

/// What --probe takes.
const std::vector<std::string>& probe_names();

/// libwarmgate_probe.so beside this program's folder (../lib), "" if it is not there.
std::filesystem::path find_probe();

/// Every worker of `spec` gets what loads the probes, and a folder for their events. A variable of
/// the scenario's own wins: somebody else's tool is where our probe would go.
void inject(const std::vector<std::string>& probes, target::TargetSpec& spec);

}  // namespace warmgate::run
