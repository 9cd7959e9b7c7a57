// From a server target to processes: what its preset adds, where its ports are, what is missing.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/run/prepare.h"
#include "harness/scenario/scenario.h"
#include "harness/target/server/gpu.h"
#include "harness/target/server/preset.h"

namespace warmgate::run {

/// The preset that a target without one is taken for: an OpenAI-compatible server.
inline constexpr const char* kPlainPreset = "openai";

/// Its preset; throws ScenarioError.
target::ServerPreset preset_of(const scenario::ServerTarget& server,
                               const std::filesystem::path& fixtures);

/// What is wrong with a server target in the light of its preset: stores, classes, switches and
/// grammars that it does not have, no command. Each at its place in the scenario.
std::vector<scenario::Problem> server_problems(const scenario::Scenario& scenario,
                                               const scenario::Variant& variant,
                                               const std::filesystem::path& fixtures);

/// Fills {port} {host} {model} {run} {port:NAME} {host:NAME}; other braces stay.
std::string fill_in(const std::string& text, const std::map<std::string, std::string>& values);

/// {model}: the absolute path of a model that is a file or folder here, else the id as written.
/// Throws std::runtime_error naming what is missing: a path, or an id that was not downloaded
/// although nothing may be (`offline`).
std::string find_model(const std::string& model, const std::filesystem::path& home,
                       const std::vector<std::string>& places, bool offline,
                       const std::map<std::string, std::string>& env);

/// Throws std::runtime_error for a worker whose program or folder is not there.
void check_programs(const target::TargetSpec& spec);

/// The workers, their ports, the companion. Throws std::runtime_error where something is missing
/// or taken, before anything is started.
void prepare_server(const scenario::Scenario& scenario, const scenario::Variant& variant,
                    const PrepareOptions& options, Prepared& prepared);

/// Deadlines of the preset, below what the scenario and the command line say.
void server_deadlines(const target::ServerPreset& preset, target::Deadlines& deadlines);

/// UUIDs of the GPUs that a run may use: those of a server target, the first visible one for our
/// own engine on device cuda; empty for other targets, and for servers without a driver.
std::vector<std::string> gpus_of(const scenario::Variant& variant);

}  // namespace warmgate::run
