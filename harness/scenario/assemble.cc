#include "harness/scenario/assemble.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/scenario/assemble_server.h"
#include "harness/scenario/check.h"
#include "harness/scenario/overlay.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

json section(const NodePtr& tree, std::string_view name) {
  const NodePtr node = tree->find(name);
  return node ? to_json(*node, *overlay_field().find(name)) : json::object();
}

json request_group(const json& yaml) {
  return {{"count", yaml.value("requests", 0)},
          {"prompt_tokens", yaml.value("prompt_tokens", 0)},
          {"output_tokens", yaml.value("output_tokens", 0)},
          {"start_step", yaml.value("start_step", 0)},
          {"request_class", yaml.value("class", "greedy")}};
}

json workload_groups(const json& workload) {
  json out = json::array();
  if (workload.contains("groups")) {
    for (const json& group : workload["groups"]) out.push_back(request_group(group));
  } else if (workload.contains("requests")) {
    out.push_back(request_group(workload));
  }
  return out;
}

}  // namespace

NodePtr rank_tree(const NodePtr& tree, std::int64_t rank) {
  const NodePtr overlay = at(tree, {"ranks", std::to_string(rank)});
  return without(merge(tree, overlay, &overlay_field()), {"ranks"});
}

Resolved assemble(const NodePtr& tree, const std::string& device) {
  json out = to_json(Resolved{});
  json model = section(tree, "model");
  const std::string preset = model.value("preset", "");
  model.erase("preset");
  out["model"].update(model);
  if (!model.contains("name")) out["model"]["name"] = preset.empty() ? "inline" : preset;
  out["limits"].update(section(tree, "limits"));
  if (!tree->find("limits") || !tree->find("limits")->find("max_model_len")) {
    out["limits"]["max_model_len"] = out["model"]["max_position_embeddings"];
  }
  const json parallel = section(tree, "parallel");
  out["parallel"]["tp"] = parallel.value("tp", 1);
  if (parallel.contains("collective_deadline")) {
    out["collective_deadline_ms"] =
        std::llround(parallel["collective_deadline"].get<double>() * 1000);
  }
  const json drafter = section(tree, "drafter");
  if (drafter.value("method", "none") != "none") out["drafter"].update(drafter);
  out["workload"]["groups"] = workload_groups(section(tree, "workload"));
  out["seams"] = section(tree, "seams");
  out["architectures"] = section(tree, "architectures");
  out["checks"].update(section(tree, "checks"));
  for (const char* key : {"seed", "probe_keys"}) {
    if (const NodePtr node = tree->find(key)) out[key] = to_json(*node, *overlay_field().find(key));
  }
  out["device"] = device;
  return resolved_from_json(out);
}

Target assemble_target(const NodePtr& tree, const std::string& folder) {
  Target out;
  const json targets = section(tree, "target");
  const bool command = targets.contains("command"), server = targets.contains("server");
  const json& target = targets[server ? "server" : command ? "command" : "native"];
  out.kind = server    ? Target::Kind::kServer
             : command ? Target::Kind::kCommand
                       : Target::Kind::kNative;
  if (server)
    out.server = assemble_server(*at(tree, {"target", "server"}), tree->find("workload"), folder);
  if (command) out.argv = target.value("argv", json::array()).get<std::vector<std::string>>();
  if (command) out.cwd = target.value("cwd", "");
  out.cold_cache = target.value("cache", json()) == "cold" && !server;
  out.env = target.value("env", json::object()).get<std::map<std::string, std::string>>();
  out.phases = target.value("phases", json::array()).get<std::vector<std::string>>();
  if (out.phases.empty()) out.phases.assign(trace::phases().begin(), trace::phases().end());
  const json deadlines = target.value("deadlines", json::object());
  for (const auto& [phase, seconds] : deadlines.items()) {
    out.deadline_s[phase == "default" ? "" : phase] = seconds.get<double>();
  }
  if (target.contains("silence")) out.silence_s = target["silence"].get<double>();
  if (target.contains("memory")) out.memory_bytes = target["memory"].get<std::int64_t>();
  return out;
}

}  // namespace warmgate::scenario
