// What is settled before a gate begins: everything that is wrong with what was asked for is said
// together, as one ScenarioError, and nothing was started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/verdict/compare/accepted.h"

namespace warmgate::run {

/// True if the variant, or all that came out of its matrix, is asked for; no names ask for all.
bool is_chosen(const scenario::Variant& variant, const std::vector<std::string>& names);

/// A name that no scenario has is a slip of the user's, not an empty run.
void refuse_unknown_variants(const std::vector<scenario::Scenario>& scenarios,
                             const std::vector<std::string>& names);

std::vector<scenario::Scenario> load_all(const std::vector<std::filesystem::path>& files,
                                         const scenario::LoadOptions& options);

/// One for each scenario, empty where it has none.
std::vector<verdict::Accepted> read_all_accepted(const std::vector<scenario::Scenario>& scenarios);

}  // namespace warmgate::run
