#include "harness/explain/skeleton.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace warmgate::explain {
namespace {

// A YAML double-quoted text is a JSON one.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Of foreign text in a comment: one line, no control characters.
std::string comment(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 200))
    out += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
  return out;
}

std::string name_of(const Reading& reading) {
  std::string out = reading.engine.empty() ? "server" : reading.engine;
  out += "-" + reading.outcome;
  if (reading.failing_phase) out += "-in-" + *reading.failing_phase;
  return out;
}

std::string figure(const Reading& reading, const char* name) {
  const auto it = reading.figures.find(name);
  if (it == reading.figures.end() || !it->second.is_number()) return "";
  return it->second.dump();
}

bool has(const Launch& launch, std::string_view option) {
  return std::find(launch.args.begin(), launch.args.end(), option) != launch.args.end();
}

}  // namespace

std::string skeleton(const Reading& reading, const Launch& launch, const std::string& log) {
  std::string out;
  out +=
      fmt::format("# A skeleton, made by `warmgate explain --scenario` from {}.\n", comment(log));
  out += reading.outcome == "passed" ? "# PASS means that it starts as it did in this log.\n"
                                     : "# PASS means that the failure is reproduced.\n";
  out += fmt::format("scenario: {}\n", name_of(reading));
  const std::string root = reading.fingerprint ? reading.fingerprint->type : reading.outcome;
  out += fmt::format("about: {}\n", quoted(comment(root)));
  out += "target:\n  server:\n";
  out +=
      fmt::format("    preset: {}\n",
                  reading.engine.empty() ? "vllm  # the log does not say which" : reading.engine);
  // Only what orders versions: "0.6.4 (V0)" is 0.6.4.
  if (reading.version) {
    const std::string version = reading.version->substr(0, reading.version->find_first_of(" ("));
    if (!version.empty()) out += fmt::format("    version: {}\n", quoted(version));
  }
  out += launch.model.empty() ? "    model: MODEL  # the log does not name it\n"
                              : fmt::format("    model: {}\n", quoted(launch.model));
  std::vector<std::string> args = launch.args;
  std::string more;
  if (const std::string length = figure(reading, "max_model_len");
      reading.engine == "vllm" && !length.empty() && !has(launch, "--max-model-len")) {
    args.insert(args.end(), {"--max-model-len", length});
    more = "; max_model_len from its figures";
  }
  out += fmt::format(
      "    # From {}{}.\n",
      launch.found() ? launch.from : "nothing: add the arguments it was started with", more);
  for (const std::string& name : launch.left_out)
    out += fmt::format("    # left out, add it by hand: {}\n", comment(name));
  if (!args.empty()) {
    out += "    args:\n";
    for (const std::string& arg : args) out += fmt::format("      - {}\n", quoted(arg));
  }
  if (reading.outcome == "hung") {
    const double silent = reading.silence ? reading.silence->seconds : 0;
    out += fmt::format("    silence: {:.0f} s\n", std::max(120.0, silent));
  }
  out += "workload: {requests: 3, prompt_tokens: 128, output_tokens: 16}\n";
  const bool judged = reading.outcome != "incomplete";
  out += fmt::format("expect: {{outcome: {}", judged ? reading.outcome : "passed");
  if (reading.failing_phase && judged) out += ", phase: " + *reading.failing_phase;
  out += "}\n";
  return out;
}

}  // namespace warmgate::explain
