#include "harness/cli/explain_report.h"
#include "harness/target/mask.h"

namespace warmgate::cli {
namespace {

using nlohmann::ordered_json;

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

ordered_json answer_json(const explain::Answer& answer) {
  ordered_json out;
  out["kind"] = std::string(explain::to_string(answer.kind));
  out["certain"] = answer.certain;
  out["reason"] = answer.reason;
  out["outside"] = ordered_json::array();
  for (const explain::OutsideCause& cause : answer.outside) {
    ordered_json item;
    item["name"] = cause.rule->name;
    item["certainty"] = cause.rule->certain ? "certain" : "likely";
    item["reason"] = cause.rule->reason;
    item["advice"] = text_or_null(cause.rule->advice);
    item["is_root"] = cause.is_root;
    item["after_failure"] = cause.after_failure;
    item["source"] = cause.source < 0 ? ordered_json() : ordered_json(cause.source);
    item["line"] = cause.source < 0 ? ordered_json() : ordered_json(cause.line);
    item["text"] = cause.text;
    out["outside"].push_back(std::move(item));
  }
  out["known"] = ordered_json::array();
  for (const explain::KnownMatch& match : answer.known) {
    const explain::Known& known = *match.known;
    ordered_json item;
    item["name"] = known.name;
    item["about"] = known.about;
    item["versions"] = text_or_null(known.versions);
    item["version_seen"] = match.version_seen;
    item["issue"] = text_or_null(known.issue);
    item["fix"] = text_or_null(known.fix);
    item["proposed"] = text_or_null(known.proposed);
    item["introduced_by"] = text_or_null(known.introduced_by);
    item["fixed_in"] = text_or_null(known.fixed_in);
    item["workaround"] = text_or_null(known.workaround);
    item["links"] = ordered_json::array();
    if (!known.issue.empty()) item["links"].push_back(explain::link_of(known.issue, false));
    if (!known.fix.empty()) item["links"].push_back(explain::link_of(known.fix, true));
    if (!known.proposed.empty()) item["links"].push_back(explain::link_of(known.proposed, true));
    for (const std::string& more : known.see)
      item["links"].push_back(explain::link_of(more, false));
    item["entry"] = known.where;
    out["known"].push_back(std::move(item));
  }
  return out;
}

ordered_json launch_json(const explain::Launch& launch) {
  if (!launch.found()) return nullptr;
  ordered_json out;
  out["from"] = launch.from;
  out["model"] = text_or_null(launch.model);
  out["program"] = launch.program;
  out["args"] = launch.args;
  out["left_out"] = launch.left_out;
  return out;
}

ordered_json start_json(const Explained& start) {
  ordered_json out = explain::to_json(start.reading);
  out["answer"] = answer_json(start.answer);
  out["launch"] = launch_json(start.launch);
  out["troubles"] = start.troubles;
  return out;
}

void each_text(const ordered_json& value, std::vector<std::string>& out) {
  if (value.is_string()) out.push_back(value.get<std::string>());
  if (value.is_structured())
    for (const auto& item : value) each_text(item, out);
}

ordered_json masked(const ordered_json& value, const std::vector<std::string>& secrets) {
  if (value.is_string()) return target::mask(value.get_ref<const std::string&>(), secrets);
  if (value.is_array()) {
    ordered_json out = ordered_json::array();
    for (const auto& item : value) out.push_back(masked(item, secrets));
    return out;
  }
  if (value.is_object()) {
    ordered_json out = ordered_json::object();
    for (const auto& [key, item] : value.items()) out[key] = masked(item, secrets);
    return out;
  }
  return value;
}

}  // namespace

std::vector<std::string> foreign_texts(const Explanation& explanation) {
  std::vector<std::string> out;
  each_text(explanation_json(explanation, {}), out);
  // An argument's name and its value are two words; only together they tell.
  for (const Explained* each :
       {&explanation.start, explanation.other ? &*explanation.other : nullptr}) {
    if (!each) continue;
    std::string words;
    for (const std::string& word : each->launch.args) words += word + " ";
    out.push_back(std::move(words));
  }
  return out;
}

ordered_json explanation_json(const Explanation& explanation,
                              const std::vector<std::string>& secrets) {
  ordered_json out = start_json(explanation.start);
  out["answer"]["hint"] = text_or_null(hint(explanation));
  if (explanation.other) out["against"] = start_json(*explanation.other);
  if (explanation.comparison) out["comparison"] = explain::to_json(*explanation.comparison);
  return secrets.empty() ? out : masked(out, secrets);
}

}  // namespace warmgate::cli
