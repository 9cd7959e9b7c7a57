// Texts of requests and answers, as traces, reports and logs hold them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace warmgate::run {

/// Fields such as prompt, messages and completion lose their values, strings their `prompt: '…'`.
/// True if there was anything.
bool drop_prompts(nlohmann::json& value);
/// `prompt: '…'` and its kin in lines of a log become `prompt: [prompt]`.
std::string without_prompts(std::string_view text);

}  // namespace warmgate::run
