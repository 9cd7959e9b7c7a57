// What the machine was like. Taken before a run, because an engine that never starts cannot tell.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/target/mask.h"

namespace warmgate::target {

inline constexpr std::string_view kEnvironmentSchema = "environment/1.0";

/// Object: schema, host, kernel, machine (architecture), cpu, cores, memory_bytes,
/// memory_available_bytes, temp {path, free_bytes}, shm_free_bytes, gpus[], driver (null if none),
/// cuda {toolkit, nvrtc} (paths or null), caches[{name, path, state}], variables {…} (those that
/// engines and compilers heed; secrets masked by value), warmgate (version), warmgate_revision,
/// taken_at (UTC), fingerprint (12 hex of the SHA-256 of what identifies the machine: no time, no
/// load). Never throws; what cannot be read is null.
nlohmann::json environment_record(const std::vector<std::string>& secrets);

/// What warmgate_revision says from then on; "unknown" before (a library cannot know of which
/// program it is part). Not thread-safe: first thing in main().
void set_revision(std::string_view revision);

/// The same, with everything read below `root` ("" = /) and the given environment: for tests.
nlohmann::json environment_record(const std::vector<std::string>& secrets, const std::string& root,
                                  const char* const* environ);

/// Is this variable one that engines, compilers or their caches heed?
bool is_relevant_variable(std::string_view name);

}  // namespace warmgate::target
