// The report for CI systems that read JUnit XML: a test suite a scenario, a test case a variant.
//
//   PASS          a plain test case
//   FAIL          <failure>: something was judged and is not as it must be
//   INCONCLUSIVE  <error>: nothing is shown to be wrong, but what was asked is not shown to hold
//                 either, so it must not look green
//   INFRA         <error>: the machine or the harness was at fault
//   SKIP          <skipped>
//
// A verdict that --soft maps to 0 becomes <skipped> with the verdict in its message, so that what
// the runner shows agrees with the exit code. A scenario's own checks (an `allow` that matches
// nothing, a broken comparison) are one more test case, named after the scenario.
// Of a comparison (`ab`) each case carries its side of the evidence table as properties, and the
// log around its fault and what was not observed as system-out.
#pragma once

#include <string>
#include <string_view>

#include "reports/report.h"

namespace warmgate::reports {

/// Well-formed XML 1.0 in UTF-8, whatever the fields hold.
std::string junit_text(const Report& report);

/// Text legal in XML 1.0 content and in a double-quoted attribute: markup is escaped, ANSI
/// sequences are dropped, characters that XML cannot hold become U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace warmgate::reports
