#include "harness/scenario/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/scenario/overlay.h"
#include "harness/scenario/scalars.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

const Field& expect_field() { return *scenario_field().find("expect"); }
const Field& one_expectation() { return expect_field().fields.front(); }

bool direct(const NodePtr& expect) {
  return std::any_of(expect->entries.begin(), expect->entries.end(),
                     [](const Node::Entry& e) { return one_expectation().find(e.key); });
}

void check_expect(const NodePtr& expect, const VariantNames& names, Problems& problems) {
  if (!expect || expect->entries.empty()) return;
  if (direct(expect)) {
    if (names.from_file) {
      problems.add(*expect,
                   "the scenario has variants, so expect is per variant: " + list_of(names.base));
    }
    return;
  }
  auto known = names.base;
  known.insert(known.end(), names.full.begin(), names.full.end());
  for (const Node::Entry& entry : expect->entries) {
    if (names.has(entry.key)) continue;
    const std::string meant = did_you_mean(entry.key, known);
    problems.add(entry.place, expect->path + "." + entry.key,
                 "no variant " + shown(entry.key) +
                     (meant.empty() ? "; there are " + list_of(names.base) : meant));
  }
}

// The part of an `expect` that speaks of one variant, null if none does.
NodePtr part(const NodePtr& expect, const std::string& base_name, const std::string& name) {
  if (!expect || expect->entries.empty()) return nullptr;
  if (direct(expect)) return expect;
  const NodePtr whole = expect->find(base_name);
  return name == base_name ? whole : merge(whole, expect->find(name), nullptr);
}

std::optional<double> optional_number(const json& rule, const char* key) {
  return rule.contains(key) ? std::optional(rule[key].get<double>()) : std::nullopt;
}

}  // namespace

bool VariantNames::has(const std::string& name) const {
  return std::find(base.begin(), base.end(), name) != base.end() ||
         std::find(full.begin(), full.end(), name) != full.end();
}

void check_variant_names(const NodePtr& scenario, const VariantNames& names, Problems& problems) {
  check_expect(scenario->find("expect"), names, problems);
  if (const NodePtr devices = scenario->find("devices")) {
    for (const Node::Entry& device : devices->entries) {
      check_expect(device.value->find("expect"), names, problems);
    }
  }
  const NodePtr allow = scenario->find("allow");
  for (const NodePtr& entry : allow ? allow->items : std::vector<NodePtr>{}) {
    const NodePtr only_in = entry->find("variants");
    if (!only_in) continue;
    for (const NodePtr& name : only_in->is_list() ? only_in->items : std::vector{only_in}) {
      if (names.has(name->text)) continue;
      const std::string meant = did_you_mean(name->text, names.base);
      problems.add(*name, "no variant " + shown(name->text) +
                              (meant.empty() ? "; there are " + list_of(names.base) : meant));
    }
  }
}

Expectation expectation_of(const NodePtr& scenario, const std::string& base_name,
                           const std::string& name, const std::string& device,
                           const Vocabulary& vocabulary) {
  NodePtr tree = part(scenario->find("expect"), base_name, name);
  tree = merge(tree, part(at(scenario, {"devices", device, "expect"}), base_name, name), nullptr);
  Expectation out;
  if (!tree) return out;
  const json values = to_json(*tree, one_expectation());
  if (values.contains("outcome")) out.outcome = values["outcome"].get<std::string>();
  if (values.contains("phase")) out.phase = values["phase"].get<std::string>();
  if (values.contains("contract"))
    out.contracts = values["contract"].get<std::vector<std::string>>();
  const json figures = values.value("figures", json::object());
  for (const auto& [figure, bound] : figures.items()) {
    out.figures[figure] = *read_bound(bound.get<std::string>(), vocabulary.unit_of(figure)).value;
  }
  return out;
}

std::map<std::string, GateRule> gate_of(const NodePtr& scenario, const Vocabulary& vocabulary,
                                        Problems& problems) {
  std::map<std::string, GateRule> out;
  const NodePtr gate = scenario->find("gate");
  if (!gate) return out;
  const json rules = to_json(*gate, *scenario_field().find("gate"), &vocabulary);
  for (const Node::Entry& entry : gate->entries) {
    const json& values = rules[entry.key];
    GateRule& rule = out[entry.key];
    rule.figure = entry.key;
    rule.max = optional_number(values, "max");
    rule.min = optional_number(values, "min");
    if (values.contains("regress")) {
      rule.regress = Regress{optional_number(values["regress"], "by"),
                             optional_number(values["regress"], "and")};
      if (!rule.regress->by_percent && !rule.regress->and_absolute) {
        problems.add(*entry.value->find("regress"), "says nothing; give by, and, or both");
      }
    }
    if (values.contains("new")) rule.new_count = values["new"].get<std::int64_t>();
    if (values.contains("direction")) rule.direction = values["direction"].get<std::string>();
    const bool contract = vocabulary.figures.count(entry.key) == 0;
    if (contract && (rule.max || rule.min || rule.regress || rule.direction)) {
      problems.add(*entry.value, "a contract is kept or broken; the rule for it is {} or {new: 0}");
    }
    if (!contract && !rule.max && !rule.min && !rule.regress && !rule.new_count) {
      problems.add(*entry.value, "says nothing; give max, min, regress or new");
    }
    if (rule.min && rule.max && *rule.min > *rule.max) {
      problems.add(*entry.value->find("min"),
                   fmt::format("min {} is above max {}", *rule.min, *rule.max));
    }
  }
  return out;
}

std::vector<Allow> allow_of(const NodePtr& scenario) {
  std::vector<Allow> out;
  const NodePtr list = scenario->find("allow");
  if (!list) return out;
  const json entries = to_json(*list, *scenario_field().find("allow"));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const json& entry = entries[i];
    Allow allow;
    allow.contract = entry.value("contract", "");
    allow.match = entry.value("match", "*");
    allow.reason = entry.value("reason", "");
    if (entry.contains("issue")) {
      const json& issue = entry["issue"];
      allow.issue = issue.is_string() ? issue.get<std::string>() : issue.dump();
    }
    allow.until = entry.value("until", "");
    allow.variants = entry.value("variants", json::array()).get<std::vector<std::string>>();
    const Place& place = list->items[i]->place;
    allow.where = fmt::format("{}:{}", *place.file, place.line);
    out.push_back(std::move(allow));
  }
  return out;
}

Needs needs_of(const NodePtr& scenario) {
  Needs out;
  const NodePtr node = scenario->find("needs");
  if (!node) return out;
  const json needs = to_json(*node, *scenario_field().find("needs"));
  if (needs.contains("gpus")) out.gpus = needs["gpus"].get<std::int64_t>();
  out.nvrtc = needs.value("nvrtc", false);
  out.gpu_gib = optional_number(needs, "gpu_gib");
  out.arch = needs.value("arch", json::array()).get<std::vector<std::string>>();
  const std::filesystem::path folder = std::filesystem::path(*node->place.file).parent_path();
  for (const json& file : needs.value("files", json::array())) {
    out.files.push_back((folder / file.get<std::string>()).lexically_normal().string());
  }
  return out;
}

}  // namespace warmgate::scenario
