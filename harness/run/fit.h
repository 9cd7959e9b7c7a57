// What a call asks for that this build or this machine cannot give: found before anything starts,
// so that it is no failure of what is tested.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace warmgate::run {

/// What the engine says of its devices (`warmgate-engine --devices`). Asked with a deadline; an
/// engine that does not know the question, or is none, has told nothing.
struct EngineDevices {
  bool told = false;
  std::vector<std::string> names;
};
EngineDevices ask_devices(const std::filesystem::path& engine);

inline constexpr const char* kDeviceKey = "target.native.device";

/// A value that cannot be had here: its key path, and why, with what could be had.
struct Unfit {
  std::string key, message;
};

class Fit {
 public:
  /// `engine` is find_engine()'s. It is asked only where a variant needs a device that is not meta.
  Fit(std::filesystem::path engine, jit::Backend backend)
      : engine_(std::move(engine)), backend_(backend) {}

  /// Nothing if the variant can be started: its device has ops in this engine, and the engine's own
  /// architecture (the first) is one that the run-time compiler has.
  std::optional<Unfit> unfit(const scenario::Variant& variant);

 private:
  const EngineDevices& devices();

  std::filesystem::path engine_;
  jit::Backend backend_;
  std::optional<EngineDevices> devices_;
};

/// Problems of the options themselves: an engine that cannot be started, a cache folder that is no
/// folder. Throws ScenarioError.
void check_options(const Options& options);

/// `message` as a problem of the value `key` of a variant, at the place that it came from.
scenario::Problem problem_at(const scenario::Scenario& scenario, const scenario::Variant& variant,
                             const Unfit& unfit);

}  // namespace warmgate::run
