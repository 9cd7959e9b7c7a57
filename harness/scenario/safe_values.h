// Values of a scenario that end up as a word of a command line, an address, or a folder that is
// written to: what they must not be.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace warmgate::scenario {

bool has_control(std::string_view text);

/// A host name or an address (also [::1] without the brackets, with a zone), nothing else.
bool is_host(std::string_view text);

/// Letters, digits, '.', '_' and '-', begun by a letter or digit: the name of a distribution.
bool is_distribution(std::string_view text);

/// Why a folder cannot be a store: "the root", "a system folder", "the home folder" or what holds
/// it; "" if it can. Links are followed as far as they lead now.
std::string why_no_store(const std::filesystem::path& folder);

}  // namespace warmgate::scenario
