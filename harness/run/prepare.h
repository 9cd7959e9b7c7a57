// From a variant to processes that can be started: one file per kind of target.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/artefact/artefacts.h"
#include "harness/run/run_dir.h"
#include "harness/scenario/scenario.h"
#include "harness/target/companion.h"
#include "harness/target/server/port.h"
#include "harness/target/target.h"
#include "kernels/jit/jit.h"

namespace warmgate::run {

struct PrepareOptions {
  std::filesystem::path engine;     // native: the engine's program
  std::filesystem::path cache_dir;  // native: its kernel cache; "" = none
  jit::Backend jit = jit::Backend::kAuto;
  double deadline_scale = 1;        // jobs/cores, times 2 where a hang is being confirmed
  std::optional<double> timeout_s;  // over all phases; replaces the default deadline
  std::optional<double> grace_s, settle_s;
  std::vector<std::string> secrets;
  const Artefacts* artefacts = nullptr;  // made already; null = no variant has one
  std::string artefact_hash;             // of the variant's own; prepare() fills it in
  std::vector<std::string> probes;       // inject.h
  std::filesystem::path fixtures;  // servers: where presets and log grammars are; "" = as usual
};

/// What must outlive the run: the folder and the descriptors that its workers inherit.
struct Prepared {
  RunDir dir;
  UniqueFd collectives;
  std::vector<target::PortLease> ports;          // servers: by member, until the run is over
  std::unique_ptr<target::Companion> inner;      // of a companion around another; outlives it
  std::unique_ptr<target::Companion> companion;  // servers, and where spans are received
  target::TargetSpec spec;
  std::string note;  // what a person should know of how it was prepared
};

/// Throws std::runtime_error or std::system_error where this machine cannot start it.
Prepared prepare(const scenario::Scenario& scenario, const scenario::Variant& variant,
                 const PrepareOptions& options);

/// One `warmgate-engine` worker per rank, its configuration in rankR.json.
void prepare_native(const scenario::Variant& variant, const PrepareOptions& options,
                    Prepared& prepared);
/// One worker: the program as the scenario writes it.
void prepare_command(const scenario::Scenario& scenario, const scenario::Variant& variant,
                     Prepared& prepared);

/// `wish` if given; else warmgate-engine beside this program, else in $WARMGATE_BIN_DIR, else "".
std::filesystem::path find_engine(const std::filesystem::path& wish);
std::string_view to_string(jit::Backend backend);

/// Bytes of the shared memory that the engine's ranks exchange their collectives through.
std::int64_t collectives_bytes(int world);

}  // namespace warmgate::run
