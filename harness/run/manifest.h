// Kubernetes manifests, as far as they say how long a container may take to start.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/probes.h"

namespace warmgate::run {

struct Probe {
  bool there = false;
  int line = 0;                                                            // 1-based, of the probe
  double initial_delay_s = 0, period_s = 10, timeout_s = 1, failures = 3;  // Kubernetes' defaults
  /// Seconds from the container's start to its end if the probe never succeeds.
  double budget_s() const { return initial_delay_s + period_s * failures; }
};

struct Container {
  std::string name;
  int line = 0;
  Probe startup, liveness, readiness;
};

/// A pod's spec, wherever it stands (Deployment, StatefulSet, Job, a custom resource …).
struct Pod {
  std::string kind, name;  // of the document
  std::vector<Container> containers;
  std::optional<double> grace_s, progress_deadline_s;
  int grace_line = 0, progress_line = 0;
};

/// Every pod of every document. Throws ScenarioError with file and line for what is no YAML, for a
/// number that is none, for a template that was not rendered, and where there is no container.
std::vector<Pod> read_manifest(const std::filesystem::path& file);

struct ManifestFinding {
  enum class State { kOk, kNote, kTooShort };
  State state = State::kOk;
  std::string where;  // file:line
  std::string text;
};

/// The budget of each container that has one against the measured time. `container` picks by name;
/// without it there may be only one with a startup or liveness probe, else ScenarioError.
std::vector<ManifestFinding> check_manifest(const std::filesystem::path& file,
                                            const std::vector<Pod>& pods, const ProbeValues& values,
                                            const std::string& container);

}  // namespace warmgate::run
