// A scenario as the harness holds it: variants already overlaid and expanded, every value with its
// origin. Made by load_scenario() from YAML; see design of the language in scenarios/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/scenario/artefact.h"
#include "harness/scenario/resolved.h"
#include "harness/scenario/server.h"

namespace warmgate::scenario {

/// One thing that is wrong with a file. Errors of a file are collected and thrown together.
struct Problem {
  std::string file;
  int line = 0, column = 0;  // 1-based; 0 = the file as a whole
  std::string key_path;      // e.g. variants.A.limits.max_model_len
  std::string message;       // what is wrong, what is allowed, "did you mean"
  std::string text() const;  // file:line:column: key_path: message
};

class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// `x`, `> x`, `>= x`, `< x`, `<= x`, `a..b`, `x ± p%` (or `x +- p%`).
struct Bound {
  enum class Op { kEqual, kGreater, kGreaterEqual, kLess, kLessEqual, kRange, kTolerance };
  Op op = Op::kEqual;
  double low = 0;    // the x of one-sided forms; lower end of a range; centre of a tolerance
  double high = 0;   // upper end of a range; per cent of a tolerance
  std::string text;  // as written
  bool holds(double value) const;
};

struct Expectation {
  std::optional<std::string> outcome;  // passed failed crashed hung incomplete
  std::optional<std::string> phase;    // where it must have broken
  std::vector<std::string> contracts;  // that must be broken (`contract: x` or a list)
  std::map<std::string, Bound> figures;
  bool empty() const { return !outcome && !phase && contracts.empty() && figures.empty(); }
};

struct Regress {
  std::optional<double> by_percent;    // relative
  std::optional<double> and_absolute;  // in the figure's unit; both must be exceeded
};

struct GateRule {
  std::string figure;  // a figure's name, or a contract's
  std::optional<double> max, min;
  std::optional<Regress> regress;
  std::optional<std::int64_t> new_count;  // more than this many not accepted → FAIL
  std::optional<std::string> direction;   // higher | lower: which way is better
};

struct Allow {
  std::string contract;
  std::string match;  // glob over Finding::key
  std::string reason;
  std::string issue;
  std::string until;                  // YYYY-MM-DD; "" = no end
  std::vector<std::string> variants;  // empty = all
  std::string where;                  // file:line, for reports
};

struct Needs {
  std::optional<std::int64_t> gpus;
  std::optional<double> gpu_gib;
  std::vector<std::string> arch;
  std::vector<std::string> files;  // paths; each has to exist
  bool nvrtc = false;              // a run-time compiler, not the host half in its place
};

/// What is started. native: our engine, one process per rank. command: any program that speaks the
/// event protocol. server: an HTTP inference server that nobody changed.
struct Target {
  enum class Kind { kNative, kCommand, kServer };
  Kind kind = Kind::kNative;
  std::vector<std::string> argv;             // command
  std::map<std::string, std::string> env;    // added to the environment
  std::string cwd;                           // "" = the scenario file's folder
  std::vector<std::string> phases;           // in the order this target declares; default all nine
  std::map<std::string, double> deadline_s;  // per phase; "" = every other phase
  std::optional<double> silence_s;
  std::optional<std::int64_t> memory_bytes;  // address-space limit of each worker
  bool cold_cache = false;                   // native: a kernel cache of the run's own, empty
  std::optional<ServerTarget> server;        // kServer; env above holds for all its members
};

struct Variant {
  std::string name;                     // "A", or "A[tp=2]" after matrix expansion
  std::string base_name;                // "A": the key that expect and allow use
  std::vector<std::string> behaviours;  // base behaviour first
  Target target;
  Artefact artefact;
  std::vector<Resolved> ranks;  // one per rank; size = tp (1 for command targets)
  Expectation expect;
  std::map<std::string, std::string> origins;  // key path → "file:line (what)"
  std::string identity;                        // SHA-256 of the canonical JSON, identity.h
};

/// Where something stands in a YAML file. 1-based; 0 = the file as a whole.
struct Position {
  std::string file;  // as problems show it
  int line = 0, column = 0;
};

struct Scenario {
  std::filesystem::path path;
  std::string name, about;
  nlohmann::json source = nlohmann::json::object();  // repo, issue, fix, introduced_by
  std::vector<std::string> tags;
  std::vector<Variant> variants;  // at least one; "default" if the file names none
  std::map<std::string, GateRule> gate;
  std::vector<Allow> allow;
  Needs needs;
  std::vector<std::string> touches;
  /// Canonical paths of all files that were read for it: itself, what it extends, presets,
  /// behaviours.
  std::vector<std::filesystem::path> files;
  /// Of the keys `scenario`, `variants.NAME`, `expect.NAME` and `gate.NAME`, as far as they are
  /// written.
  std::map<std::string, Position> positions;
  std::filesystem::path accepted_path() const;  // <file without .yaml>.accepted.json
};

/// Command-line choices that change what a file means.
struct LoadOptions {
  std::string device;                 // "" = as the file says
  std::vector<std::string> overlays;  // KEY.PATH=VALUE from --set, applied last
  std::filesystem::path fixtures;     // "" = $WARMGATE_FIXTURES, the source tree's, or share/'s
  /// Metrics and contracts from outside the tree, so that expect, gate and allow may name them.
  std::map<std::string, std::string> extra_figures;  // name → unit
  std::vector<std::string> extra_contracts;
};

/// Throws ScenarioError with every problem of the file (and of what it extends).
Scenario load_scenario(const std::filesystem::path& file, const LoadOptions& options = {});

/// Scenario files under folders, globs and files, sorted, without duplicates; throws
/// ScenarioError for a path that matches nothing.
std::vector<std::filesystem::path> find_scenarios(const std::vector<std::string>& paths);

/// JSON Schema (draft 2020-12) of the language, from the same table that drives the reader.
nlohmann::json schema();

/// What `warmgate resolve` prints of a variant: `schema: resolve/1.0`, the target, the behaviours,
/// the expectation, the identity, and `values`: every value of every rank as {key, value, origin},
/// where the origin is "file:line (layer)" or "default".
nlohmann::json resolve_json(const Variant& variant);

}  // namespace warmgate::scenario
