// Secrets that a log gives away: tokens, passwords of URLs, signatures of queries, keys among the
// arguments that servers print at their start. Found by shape and by the name beside them, so that
// a report can mask them by value wherever they turn up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgate::explain {

/// Values in `text` that look like secrets, at least 6 bytes long each, without duplicates, longest
/// first. Names beside values are judged by `is_secret_name` (api_key, HF_TOKEN, password …).
/// Written as NAME=value, --name value, --name=value, 'name': 'value', Authorization: Bearer value,
/// scheme://user:password@host, ?X-Amz-Signature=value, and bare hf_…, sk-…, ghp_…, AKIA….
std::vector<std::string> secrets_in(std::string_view text,
                                    bool (*is_secret_name)(std::string_view));

}  // namespace warmgate::explain
