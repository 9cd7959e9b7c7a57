// A run in one file, to send to somebody: packed from what --keep wrote or from a JSON report, and
// opened again to repeat it. What is in it: kept.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/kept.h"
#include "harness/run/run_dir.h"

namespace warmgate::run {

/// What a bundle holds only if somebody asks for it.
struct BundleWish {
  bool caches = false;   // the cache folders that the environment record names
  bool cores = false;    // core dumps in the kept folder
  bool prompts = false;  // texts of requests and answers in traces, logs and the report
};

struct Bundled {
  std::filesystem::path file;
  std::uintmax_t bytes = 0;
  std::size_t files = 0;
  std::string command;  // repeats the run from the bundle
  std::vector<std::string> left_out;
};

/// `run` is a folder of --keep, or a JSON report; `output` may be empty: the name of the first
/// scenario with .tar.gz, here. Throws ScenarioError if `run` is neither, std::runtime_error if the
/// bundle cannot be written.
Bundled make_bundle(const std::filesystem::path& run, const std::filesystem::path& output,
                    const BundleWish& wish, const std::vector<std::string>& secrets);

/// Archives that look like one, and folders that --keep wrote.
bool is_bundle(const std::filesystem::path& path);

/// A bundle, unpacked where nobody else can write.
struct OpenBundle {
  RunDir dir;                  // removed at its end
  std::filesystem::path root;  // what is in the bundle
  std::string verb;            // run ab gate
  std::vector<std::filesystem::path> scenarios;
  std::vector<std::string> sides;
  Options options;                 // as the call had them
  std::vector<std::string> notes;  // what a person should know before it runs
  /// Files that commands name and that are neither in the bundle nor at their place here. What is
  /// expected to fail would fail without them too, of another cause.
  std::vector<std::string> missing;
};

/// Throws ScenarioError: damaged, hostile, of another schema, without a scenario.
OpenBundle open_bundle(const std::filesystem::path& path);

/// Throws ScenarioError where something is missing. To look into such a bundle is no error.
void refuse_missing(const OpenBundle& bundle, const std::filesystem::path& path);

/// Scenarios out of a bundle: variables whose value was a secret are taken from the environment
/// instead. Throws ScenarioError where an argument was one.
void put_secrets_back(scenario::Scenario& scenario);

}  // namespace warmgate::run
