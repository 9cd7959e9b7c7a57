// Follows one start of any command without a scenario: for somebody who sits before a terminal.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/watch/live.h"
#include "harness/target/target.h"
#include "harness/verdict/verdict.h"

namespace warmgate::run {

struct WatchOptions {
  std::vector<std::string> argv;
  std::vector<std::string> probes;  // inject.h
  std::optional<double> timeout_s;  // over all; none: it goes on until it ends
  bool until_ready = false;         // end it when it is ready
  std::string ready_text;           // a line of its output that holds this says ready; "" = none
  bool output = false;              // hand on what it prints
  std::filesystem::path fixtures;   // where log grammars are; "" = as usual
};

struct Watched {
  verdict::RunRecord run;  // outcome, contracts, figures, trace
  std::optional<double> ready_s;
  std::vector<std::string> secrets;  // to mask in what is shown
  bool interrupted = false;
  bool never_ready = false;  // though ready was waited for
};

/// What may not be shown of this call: of the environment and of the command.
std::vector<std::string> secrets_of(const WatchOptions& options);

/// Calls `say` for each line and `print` for what the command prints (a whole line, unmasked),
/// both from the calling thread. A command without a name is a std::invalid_argument; probes that
/// are not there are a ScenarioError.
Watched watch(const WatchOptions& options, const target::CancelToken& cancel,
              const std::function<void(const LiveLine&)>& say,
              const std::function<void(std::string_view)>& print);

}  // namespace warmgate::run
