#include "reports/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/key_words.h"

namespace warmgate::reports {
namespace {

void add_distinct(std::vector<int>& list, int value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

// A field of free JSON as text: strings as they are, anything else as JSON.
std::string plain(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  if (what.empty()) return text;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// A text that is the same for all keys but for the key itself. Short keys are ordinary words.
std::string without(const std::string& text, const std::string& key) {
  return key.size() < 4 ? text : replaced(text, key, "\x1e");
}

// True if the text says "layer 43" or "layers 1,2" somewhere.
bool names_layers(std::string_view text) {
  for (std::size_t at = text.find("layer"); at != std::string_view::npos;
       at = text.find("layer", at + 5)) {
    std::size_t next = at + 5;
    if (next < text.size() && text[next] == 's') ++next;
    if (next + 1 < text.size() && text[next] == ' ' && text[next + 1] >= '0' &&
        text[next + 1] <= '9')
      return true;
  }
  return false;
}

std::string place_text(const FindingGroup& group) {
  std::string out = layers_text(group.layers), kind = group.first->role;
  if (!group.first->layer_kind.empty())
    kind += (kind.empty() ? "" : ", ") + group.first->layer_kind;
  return kind.empty() ? out : out + " (" + kind + ")";
}

// A missing resource is told from the layers' side: who lacks it, who was asked, what they own.
std::string missing_resource_text(const FindingGroup& group) {
  const contract::Finding& f = *group.first;
  if (f.contract != "owned-resources" || f.key.empty() || f.layer < 0 || !f.detail.is_object() ||
      !f.detail.contains("owns") || !f.detail["owns"].is_array())
    return "";
  std::vector<std::string> owns;
  for (const auto& resource : f.detail["owns"]) owns.push_back(plain(resource));
  const bool many = group.layers.size() > 1;
  return fmt::format("{} own{} no {}, which {}{}; {} {}", place_text(group), many ? "" : "s", f.key,
                     f.phase.empty() ? "the engine" : f.phase,
                     many ? fmt::format(" asks layer {} for", f.layer) : " asks for",
                     many ? "they own" : "it owns",
                     owns.empty() ? "nothing" : fmt::format("{}", fmt::join(owns, ", ")));
}

}  // namespace

std::string layers_text(std::vector<int> layers) {
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  std::string out;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    if (end - i <= 3) end = i + 1;  // 43,44,45 reads better than 43-45
    if (!out.empty()) out += ',';
    out +=
        end - i == 1 ? std::to_string(layers[i]) : fmt::format("{}-{}", layers[i], layers[end - 1]);
    i = end;
  }
  return (layers.size() == 1 ? "layer " : "layers ") + out;
}

std::vector<FindingGroup> group_findings(const std::vector<contract::Finding>& findings) {
  std::vector<FindingGroup> groups;
  std::map<std::string, std::size_t> index;
  for (const contract::Finding& f : findings) {
    std::string id = is_compile_key(f.key) ? f.key.substr(0, f.key.find('{')) : "";
    id += '\x1f';
    for (const std::string& part :
         {f.contract, f.phase, f.layer_kind, f.role, f.message.empty() ? f.key : "",
          without(f.message, f.key), without(f.expected, f.key)}) {
      id += part + '\x1f';
    }
    const auto [at, fresh] = index.emplace(std::move(id), groups.size());
    if (fresh) groups.push_back({&f, {}, {}, {}, 0});
    FindingGroup& group = groups[at->second];
    group.count += std::max<std::size_t>(f.count, 1);
    if (f.layer >= 0) add_distinct(group.layers, f.layer);
    // `layers`: all that broke it; `same_layers`: those that would, had the first not stopped it.
    for (const char* list : {"layers", "same_layers"}) {
      if (!f.detail.is_object() || !f.detail.contains(list) || !f.detail[list].is_array()) continue;
      for (const auto& layer : f.detail[list]) {
        if (layer.is_number_integer()) add_distinct(group.layers, layer.get<int>());
      }
    }
    if (f.rank >= 0) add_distinct(group.ranks, f.rank);
    if (!f.key.empty() &&
        std::find(group.keys.begin(), group.keys.end(), f.key) == group.keys.end()) {
      group.keys.push_back(f.key);
    }
  }
  return groups;
}

std::string proof_text(const FindingGroup& group, const verdict::RunRecord* run) {
  const contract::Finding& f = *group.first;
  if (const std::string text = missing_resource_text(group); !text.empty()) return text;
  std::string said = f.message;
  if (said.empty()) {
    said = f.expected.empty() ? f.seen : fmt::format("expected {}, seen {}", f.expected, f.seen);
    if (!f.key.empty() && said.find(f.key) == std::string::npos) said = f.key + ": " + said;
  }
  if (!f.key.empty() && (run || group.keys.size() > 1)) {
    std::string words = short_key(group.keys, run);
    if (group.keys.size() > 1 && is_compile_key(f.key))
      words += fmt::format(" ({} keys)", group.keys.size());
    said = replaced(said, f.key, words);
  }
  if (run) said = with_short_keys(std::move(said), *run);
  std::string where;
  // A message that speaks of its layers itself keeps its own words.
  if (!group.layers.empty() && !names_layers(said)) {
    where = place_text(group);
  }
  return where.empty() ? said : where + ": " + said;
}

std::string outcome_text(const verdict::RunRecord& run) {
  std::string out(verdict::to_string(run.outcome));
  if (!run.phase.empty() && run.outcome != verdict::Outcome::kPassed) out += " in " + run.phase;
  if (!run.signal_name.empty()) out += " by " + run.signal_name;
  // An exception or a failed assertion is told by the reason; these the reason may not name.
  if (run.kind == "oom")
    out += " (out of memory)";
  else if (run.outcome == verdict::Outcome::kHung && !run.kind.empty())
    out += " (" + run.kind + ")";
  else if (run.outcome == verdict::Outcome::kCrashed && run.kind == "exit" && run.exit_code)
    out += fmt::format(" (exit {})", *run.exit_code);
  return out;
}

bool tells_more(const contract::Result& result, const verdict::RunRecord& run) {
  const bool ended_early =
      run.outcome == verdict::Outcome::kCrashed || run.outcome == verdict::Outcome::kHung;
  return result.state == contract::State::kBroken && !(result.contract == "starts" && ended_early);
}

bool wants_command(const VariantReport& variant) {
  using verdict::Verdict;
  if (variant.verdict.verdict != Verdict::kPass && variant.verdict.verdict != Verdict::kSkip)
    return true;
  return std::any_of(variant.runs.begin(), variant.runs.end(), [](const auto* run) {
    return run->outcome != verdict::Outcome::kPassed && run->outcome != verdict::Outcome::kSkipped;
  });
}

const verdict::RunRecord* telling_run(const VariantReport& variant) {
  for (const verdict::RunRecord* run : variant.runs) {
    if (run->outcome != verdict::Outcome::kPassed) return run;
  }
  return variant.runs.empty() ? nullptr : variant.runs.front();
}

std::string disagreement_text(const VariantReport& variant) {
  std::vector<std::pair<std::string, int>> counts;
  for (const verdict::RunRecord* run : variant.runs) {
    const std::string text = outcome_text(*run);
    const auto at = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& entry) { return entry.first == text; });
    if (at == counts.end())
      counts.emplace_back(text, 1);
    else
      ++at->second;
  }
  if (counts.size() < 2) return "";
  std::string out;
  for (const auto& [text, count] : counts) {
    out += fmt::format("{}{} of {} runs {}", out.empty() ? "" : ", ", count, variant.runs.size(),
                       text);
  }
  return out;
}

std::string source_text(const nlohmann::json& source) {
  if (!source.is_object()) return "";
  std::string out;
  const auto add = [&](const char* key, const char* word) {
    if (!source.contains(key)) return;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", word, plain(source[key]));
  };
  add("issue", "issue");
  add("introduced_by", "introduced by");
  add("fix", "fixed by");
  const std::string repo = source.contains("repo") ? plain(source["repo"]) : "";
  if (repo.empty()) return out;
  return out.empty() ? repo : repo + ": " + out;
}

}  // namespace warmgate::reports
