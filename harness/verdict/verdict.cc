#include "harness/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace warmgate::verdict {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kCrashed:
      return "crashed";
    case Outcome::kHung:
      return "hung";
    case Outcome::kIncomplete:
      return "incomplete";
    case Outcome::kSkipped:
      return "skipped";
    case Outcome::kInfra:
      return "infra";
  }
  return "infra";
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kInconclusive:
      return "INCONCLUSIVE";
    case Verdict::kInfra:
      return "INFRA";
    case Verdict::kSkip:
      return "SKIP";
  }
  return "INFRA";
}

Verdict worst(const std::vector<Verdict>& verdicts) {
  for (Verdict v : {Verdict::kFail, Verdict::kInfra, Verdict::kInconclusive, Verdict::kPass})
    if (std::find(verdicts.begin(), verdicts.end(), v) != verdicts.end()) return v;
  return Verdict::kSkip;
}

const contract::Result* find_result(const RunRecord& run, std::string_view contract) {
  for (const contract::Result& result : run.contracts)
    if (result.contract == contract) return &result;
  return nullptr;
}

std::string base_name(std::string_view variant) {
  return std::string(variant.substr(0, variant.find('[')));
}

std::string number_text(double value) {
  if (std::nearbyint(value) == value && std::abs(value) < 9e15)
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{:.6g}", value);
}

}  // namespace warmgate::verdict
