// Annotations of GitHub Actions: workflow commands (`::error file=…::message`) that the runner
// reads from the output of a step and shows at the line of the file, in the pull request too.
//
// https://docs.github.com/actions/reference/workflow-commands-for-github-actions
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/scenario.h"
#include "reports/report.h"

namespace warmgate::reports {

/// The runner drops what a step says beyond this many of each level.
inline constexpr std::size_t kMostAnnotations = 10;

/// A file as it was shown → its path from the root of the repository, with slashes; "" for what is
/// no file of it.
using RepositoryPath = std::function<std::string(const std::string&)>;

/// An error for each variant that is FAIL or INFRA and for each check of a scenario that failed, a
/// warning where --soft forgives that and where a verdict is INCONCLUSIVE, one notice for all that
/// was skipped. At the variant's line in its YAML file, with what broke and the command that
/// repeats it. The last of ten counts those beyond.
std::string github_annotations(const Report& report, const RepositoryPath& path);

/// What is wrong with scenario files, each at its line and column.
std::string github_annotations(const std::vector<scenario::Problem>& problems,
                               const RepositoryPath& path);

/// One error without a place.
std::string github_error(std::string_view message);

/// %, CR and LF as the runner decodes them; in a property also : and the comma.
std::string github_data(std::string_view text);
std::string github_property(std::string_view text);

}  // namespace warmgate::reports
