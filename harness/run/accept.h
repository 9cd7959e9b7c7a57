// Takes what runs showed as it is: writes the accepted sets and counts beside the scenario.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/run/run.h"
#include "harness/verdict/compare/accepted.h"

namespace warmgate::run {

struct AcceptedFile {
  std::filesystem::path file;
  std::string scenario;
  std::vector<std::string> variants;     // taken from these runs
  std::vector<std::string> kept;         // were in the file before and stay as they were
  std::vector<std::string> passed_over;  // no valid run: "A: infra, because …"
};

/// From a run that was just made. Variants that did not run stay as the file has them. `output`
/// replaces the place beside the scenario: a file for one scenario, or a folder (one that is there,
/// or a path that ends in /) for any number. Throws std::runtime_error, before anything is written:
/// nothing to accept, several scenarios for one file, two of one name for a folder.
std::vector<AcceptedFile> accept(const GateResult& result,
                                 const std::filesystem::path& output = {});

/// The same from a JSON report of run or gate. The scenarios must still be where the report says.
std::vector<AcceptedFile> accept_report(const std::filesystem::path& report,
                                        const std::filesystem::path& output = {});

}  // namespace warmgate::run
