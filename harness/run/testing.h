// What the integration tests share: scenario files of their own, and one call from YAML to results.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/run/run.h"
#include "harness/run/run_dir.h"

namespace warmgate::run::testing {

namespace fs = std::filesystem;

inline fs::path from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return fs::absolute(value != nullptr ? value : fallback);
}
inline fs::path source_dir() { return from_environment("WARMGATE_SOURCE_DIR", "."); }
inline fs::path bin_dir() { return from_environment("WARMGATE_BIN_DIR", "build-dev/bin"); }
inline std::string worker(const std::string& name) {
  return (bin_dir() / "workers" / ("worker_" + name)).string();
}

/// A folder for scenarios, a kernel cache that tests share (so that keys are compiled once), and
/// what a run needs. A lock folder of its own keeps other tests' measurements out of the way.
class Product : public ::testing::Test {
 protected:
  Product() : dir_("test") {
    ::setenv("XDG_RUNTIME_DIR", dir_.path().c_str(), 1);
    options_.engine = bin_dir() / "warmgate-engine";
    options_.cache_dir = bin_dir().parent_path() / "test-kernel-cache";
    options_.load.fixtures = source_dir() / "fixtures";
  }
  ~Product() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  fs::path put(const std::string& name, const std::string& text) {
    const fs::path path = dir_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  fs::path script(const std::string& name, const std::string& text) {
    const fs::path path = put(name, text);
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  GateResult run(const std::vector<fs::path>& files) {
    return run_scenarios(files, options_, cancel_);
  }
  /// The only run of the only variant.
  verdict::RunRecord run_one(const fs::path& file) {
    last_ = run({file});
    return last_.scenarios.at(0).variants.at(0).runs.at(0);
  }

  RunDir dir_;
  Options options_;
  target::CancelToken cancel_;
  GateResult last_;
};

/// The state of a contract in a run; "absent" if it was not judged.
inline std::string state_of(const verdict::RunRecord& run, const std::string& contract) {
  const contract::Result* result = verdict::find_result(run, contract);
  return result != nullptr ? std::string(contract::to_string(result->state)) : "absent";
}

/// Contracts with findings, in order.
inline std::vector<std::string> broken(const verdict::RunRecord& run) {
  std::vector<std::string> out;
  for (const contract::Result& result : run.contracts) {
    if (result.state == contract::State::kBroken) out.push_back(result.contract);
  }
  return out;
}

/// Everything a person needs when a test fails.
inline std::string story(const verdict::RunRecord& run) {
  std::string out = std::string(verdict::to_string(run.outcome)) + ": " + run.reason + "\n";
  for (const contract::Result& result : run.contracts) {
    if (result.state == contract::State::kKept) continue;
    out += "  " + result.contract + " " + std::string(contract::to_string(result.state)) + " " +
           result.why + "\n";
    for (const auto& finding : result.findings) {
      out += "    " + finding.key + ": " + finding.message + "\n";
    }
  }
  for (const verdict::Output& output : run.outputs) {
    if (!output.head.empty())
      out += "  " + output.stream + ": " + output.head.substr(0, 800) + "\n";
  }
  return out;
}

}  // namespace warmgate::run::testing
