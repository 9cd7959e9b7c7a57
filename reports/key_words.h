// Compile keys in few words: what a person needs to tell them from their like.
#pragma once

#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace warmgate::reports {

/// `Kernel{COMPRESS_RATIO=0,…}`: the fields in which all of `keys` agree and in which the run's
/// other keys of that kernel (warmed or launched) do not all agree; `Kernel{…}` if there are
/// several and nothing sets them apart. The key itself where nothing would be left out. What is no
/// compile key stays as it is, up to three of them.
std::string short_key(const std::vector<std::string>& keys, const verdict::RunRecord* run);

/// True for texts of the form `Kernel{NAME=value,…}`.
bool is_compile_key(const std::string& text);

/// Replaces every whole key of the run in a text by its short form.
std::string with_short_keys(std::string text, const verdict::RunRecord& run);

}  // namespace warmgate::reports
