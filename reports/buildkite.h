// An annotation for a Buildkite build: CommonMark with the little HTML that Buildkite lets through.
//
//   warmgate ab FILE --buildkite - | buildkite-agent annotate --style error --context warmgate
//
// The style cannot stand in the text, so the first line, a comment, holds the whole command.
// https://buildkite.com/docs/agent/v3/cli-annotate
#pragma once

#include <string>
#include <string_view>

#include "reports/report.h"

namespace warmgate::reports {

/// Buildkite refuses a longer one.
inline constexpr std::size_t kAnnotationLimit = 1024 * 1024;

/// success for PASS, error for FAIL and INFRA, warning for INCONCLUSIVE and for whatever --soft
/// forgives, info for SKIP.
std::string_view buildkite_style(const Report& report);
/// One annotation a verb and scenario, so that a retried step replaces its own.
std::string buildkite_context(const Report& report);
/// At most kAnnotationLimit bytes.
std::string buildkite_annotation(const Report& report);

}  // namespace warmgate::reports
