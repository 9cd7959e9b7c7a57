#include "harness/contract/external.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/contract/builtin.h"
#include "harness/contract/cause.h"
#include "harness/contract/subprocess.h"

namespace warmgate::contract {
namespace {

using nlohmann::json;

std::string field(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return "";
  return it->is_string() ? it->get<std::string>()
                         : it->dump(-1, ' ', false, json::error_handler_t::replace);
}

int small_int(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return -1;
  const auto value = it->get<std::int64_t>();
  return value >= 0 && value <= std::numeric_limits<int>::max() ? static_cast<int>(value) : -1;
}

Finding finding(const std::string& name, const json& line, std::size_t trace_size) {
  Finding f;
  f.contract = name;
  f.phase = field(line, "phase");
  f.layer = small_int(line, "layer");
  f.layer_kind = field(line, "layer_kind");
  f.role = field(line, "role");
  f.rank = small_int(line, "rank");
  f.key = field(line, "key");
  f.expected = field(line, "expected");
  f.seen = field(line, "seen");
  f.message = field(line, "message");
  if (f.message.empty()) f.message = fmt::format("expected {}, saw {}", f.expected, f.seen);
  if (const int count = small_int(line, "count"); count > 0)
    f.count = static_cast<std::size_t>(count);
  if (const auto it = line.find("detail"); it != line.end()) f.detail = *it;
  if (const auto it = line.find("events"); it != line.end() && it->is_array()) {
    for (const json& index : *it) {
      if (index.is_number_unsigned() && index.get<std::uint64_t>() < trace_size)
        f.events.push_back(index.get<std::size_t>());
    }
  }
  return f;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Why the program's word cannot be taken; "" if it can.
std::string refusal(const Finished& end, const ExternalContract& contract) {
  if (!end.started) return "did not start: " + end.problem;
  if (end.timed_out)
    return fmt::format("did not end within {} ms and was killed", contract.deadline.count());
  if (end.too_much)
    return fmt::format("wrote more than {} bytes and was killed", kMaxExternalOutput);
  if (!end.problem.empty()) return end.problem;
  const std::string said = end.err.empty() ? "" : ": " + first_line(end.err);
  if (end.signal != 0) return "ended by " + signal_text(end.signal) + said;
  if (end.exit_code != 0) return fmt::format("ended with code {}{}", end.exit_code, said);
  return "";
}

}  // namespace

Result judge_external(const ExternalContract& contract, const Context& context) {
  const auto emits = context.trace.emits();
  std::vector<std::string> missing;
  for (const std::string& kind : contract.needs)
    if (emits.count(kind) == 0) missing.push_back(kind);
  if (!missing.empty())
    return not_observed(contract.name, missing, "no source would have sent these events");

  std::size_t next = 0;
  const auto& events = context.trace.events;
  const auto feed = [&]() {
    std::string piece;
    while (next < events.size() && piece.size() < 65536)
      piece += trace::to_line(events[next++]) + '\n';
    return piece;
  };
  const Finished end = run_helper(contract.argv, feed, contract.deadline, kMaxExternalOutput);
  const std::string program = contract.argv.empty() ? contract.name : contract.argv.front();
  if (const std::string why = refusal(end, contract); !why.empty())
    return not_observed(contract.name, {}, program + " " + why);

  Result result = conclude(contract.name, {});
  std::size_t number = 0, start = 0;
  while (start < end.out.size()) {
    const std::size_t stop = std::min(end.out.find('\n', start), end.out.size());
    const std::string line = end.out.substr(start, stop - start);
    start = stop + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object())
      return not_observed(contract.name, {},
                          fmt::format("{} wrote line {}, which is not a JSON object: {}", program,
                                      number, line.substr(0, 80)));
    if (const std::string state = field(object, "state"); !state.empty()) {
      if (state == "not_applicable") return not_applicable(contract.name, field(object, "why"));
      if (state == "not_observed") return not_observed(contract.name, {}, field(object, "why"));
      if (state != "kept" && state != "broken")
        return not_observed(contract.name, {}, program + " gave an unknown state: " + state);
      if (state == "kept") continue;
    }
    const auto note = object.find("note");
    auto& list = note != object.end() && note->is_boolean() && note->get<bool>() ? result.notes
                                                                                 : result.findings;
    if (list.size() >= kMaxExternalFindings) {
      result.why = fmt::format("more than {} findings; the rest is left out", kMaxExternalFindings);
      continue;
    }
    list.push_back(finding(contract.name, object, events.size()));
  }
  if (!result.findings.empty()) result.state = State::kBroken;
  return result;
}

}  // namespace warmgate::contract
