#include "harness/run/doctor.h"

#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/result_output.h"
#include "harness/explain/reader.h"
#include "reports/printer.h"

namespace warmgate::cli {

int doctor_command(const CommandLine& line, Console& console) {
  if (!line.target_preset.empty()) return doctor_target_command(line, console);
  using State = run::Capability::State;
  std::vector<run::Capability> found = run::doctor(line.run);
  found.push_back({"log grammars",
                   explain::available() ? State::kThere : State::kMissing,
                   explain::availability(),
                   {"explain", "phases of server targets"}});
  nlohmann::ordered_json json;
  json["schema"] = "doctor/1.0";
  json["warmgate"] = WARMGATE_VERSION;
  json["capabilities"] = nlohmann::ordered_json::array();
  reports::Printer out(console.out_style(), {});
  std::size_t widest = 0;
  for (const run::Capability& c : found) widest = std::max(widest, c.name.size());
  for (const run::Capability& c : found) {
    const reports::Tone tone = c.state == State::kThere     ? reports::Tone::kGood
                               : c.state == State::kLimited ? reports::Tone::kDoubt
                                                            : reports::Tone::kBad;
    const std::string lead = out.cell(run::to_string(c.state), tone, 9) +
                             out.cell(c.name, reports::Tone::kStrong, widest + 2);
    out.paragraph(0, c.why, reports::Tone::kPlain, lead, 9 + widest + 2);
    if (c.state != State::kThere && !c.affects.empty()) {
      out.paragraph(9 + widest + 2, fmt::format("without it: {}", fmt::join(c.affects, ", ")),
                    reports::Tone::kQuiet);
    }
    json["capabilities"].push_back({{"name", c.name},
                                    {"state", run::to_string(c.state)},
                                    {"why", c.why},
                                    {"affects", c.affects}});
  }
  return deliver_result(json, out.take(), 0, line, console);
}

}  // namespace warmgate::cli
