// What an explanation looks like to a person and to a program.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/explain/answer.h"
#include "harness/explain/compare.h"
#include "harness/explain/launch.h"
#include "reports/printer.h"
#include "reports/terminal.h"

namespace warmgate::cli {

/// One start: what its logs say, and what is made of it.
struct Explained {
  explain::Reading reading;
  explain::Answer answer;
  explain::Launch launch;
  std::vector<std::string> troubles;  // per damaged log: "NAME: why"
};

struct Explanation {
  Explained start;
  std::optional<Explained> other;                 // --against
  std::optional<explain::Comparison> comparison;  // from the other to the start
  std::vector<std::string> logs;                  // as the user named them
  std::string skeleton;                           // file that was written; "" = none
  bool end_known = false;                         // --ended
};

/// Every text of an explanation that came out of a log, to look for secrets in.
std::vector<std::string> foreign_texts(const Explanation& explanation);

/// What would tell more, where the log alone does not say how it ended; "" where it does.
std::string hint(const Explanation& explanation);

/// The first line is the answer.
std::string explanation_text(const Explanation& explanation, const reports::Style& style,
                             reports::Detail detail, const std::vector<std::string>& secrets);

/// Rows of explanation.comparison, which has to be there.
void print_comparison(reports::Printer& out, const Explanation& explanation);

/// A figure's value and a phase's seconds, "-" where there is none.
std::string value_text(const nlohmann::json& value);
std::string seconds_text(const std::optional<double>& seconds);

/// schema explain/1.0: the names of the sidecars in fixtures/logs at the top, then `answer`,
/// `launch`, and with a second log `against` and `comparison`. Secrets are masked.
nlohmann::ordered_json explanation_json(const Explanation& explanation,
                                        const std::vector<std::string>& secrets);

}  // namespace warmgate::cli
