#include "reports/buildkite.h"

#include <fmt/format.h>

#include "reports/markdown.h"
#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {

std::string_view buildkite_style(const Report& report) {
  using verdict::Verdict;
  if (!is_good(report.verdict) && report.soft.count(report.verdict) > 0) return "warning";
  switch (report.verdict) {
    case Verdict::kPass:
      return "success";
    case Verdict::kFail:
    case Verdict::kInfra:
      return "error";
    case Verdict::kInconclusive:
      return "warning";
    case Verdict::kSkip:
      break;
  }
  return "info";
}

std::string buildkite_context(const Report& report) {
  std::string words = report.verb;
  if (report.scenarios.size() == 1)
    words += "-" + mask(report.scenarios.front().name, report.secrets);
  std::string out = "warmgate-";
  for (const char c : words) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : '-';
    if (out.size() == 80) break;
  }
  return out;
}

std::string buildkite_annotation(const Report& report) {
  // A comment must hold no "--" in HTML, but readers of CommonMark end it at "-->" alone.
  const std::string head =
      fmt::format("<!-- buildkite-agent annotate --style {} --context {} -->\n\n",
                  buildkite_style(report), buildkite_context(report));
  return head + markdown_report(report, kAnnotationLimit - head.size());
}

}  // namespace warmgate::reports
