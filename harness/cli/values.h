// Values of the command line that are more than a word.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/verdict/verdict.h"

namespace warmgate::cli {

/// "90", "90 s", "1.5min", "2h", "500ms" → seconds; nothing if it is none of these.
std::optional<double> parse_seconds(std::string_view text);

/// "" for YYYY-MM-DD, else what is wrong with it.
std::string check_date(const std::string& text);

/// fail, inconclusive, infra or skip in any case; skip for anything else.
verdict::Verdict verdict_of(std::string name);

}  // namespace warmgate::cli
