#include "harness/plan/shrink/scenario_file.h"

#include <fmt/format.h>

#include "harness/scenario/problems.h"

namespace warmgate::plan::shrink {
namespace {

// JSON is YAML.
std::string text(const std::string& word) {
  return Json(word).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + text(word);
  return "[" + out + "]";
}

// Scenario names are words with dashes.
std::string name_of(const std::string& model_type) {
  std::string out = "starts-small-";
  for (const char c : model_type) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return out;
}

}  // namespace

std::string scenario_text(const Result& r, const Request& request, Complaints& complaints) {
  const StartLine* line = nullptr;
  std::vector<std::string> names;
  for (const StartLine& each : r.lines) {
    if (each.command.empty()) continue;
    names.push_back(each.preset);
    if (each.preset == request.preset) line = &each;
  }
  if (!line) {
    complaints.add("", "--preset " + scenario::shown(request.preset) +
                           " cannot be started without weights; " + scenario::list_of(names) +
                           " can");
    return "";
  }
  const bool drafts = !r.after.draft.empty() && request.preset != "trtllm";
  std::vector<std::string> args = line->args;
  const bool known = request.preset != "trtllm";  // whose preset has a switch for it
  if (!known) args.insert(args.begin(), line->weightless.begin(), line->weightless.end());
  std::string env;
  for (const auto& [name, value] : line->env)
    env += fmt::format("{}{}: {}", env.empty() ? "" : ", ", name, text(value));

  std::string out = fmt::format(
      "# Written by warmgate shrink. The model is small and its weights are random: a gate may ask "
      "that "
      "it\n"
      "# starts, serves and keeps its promises; never for memory, speed or text{}.\n"
      "scenario: {}\n"
      "about: The small {} starts and serves.\n"
      "needs: {{gpus: {}, gpu_gib: {}}}\n"
      "target:\n"
      "  server:\n"
      "    preset: {}\n",
      drafts ? ", nor for accepted drafts" : "", name_of(r.after.model_type), r.after.model_type,
      request.parallel.tp * std::max<std::int64_t>(1, request.parallel.ep / request.parallel.tp),
      // A slice of 16 GiB shows some hundred MiB less.
      std::max<std::int64_t>(1, r.memory_bytes / kGiB - 1), request.preset);
  if (known) out += "    with: [weightless]\n";
  const std::string folder = std::filesystem::absolute(request.out).lexically_normal().string();
  out += "    model: " + text(folder) + "\n";
  if (!args.empty()) out += "    args: " + list(args) + "\n";
  if (!env.empty()) out += "    env: {" + env + "}\n";
  out += "workload: {requests: 3, prompt_tokens: 128, output_tokens: 16}\n";
  out += drafts ? "expect: {outcome: passed, figures: {drafts: \"> 0\"}}\n"
                : "expect: {outcome: passed}\n";
  out += "gate: {compiles_after_ready: {new: 0}}\n";
  return out;
}

}  // namespace warmgate::plan::shrink
