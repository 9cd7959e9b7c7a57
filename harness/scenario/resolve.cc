// What `warmgate resolve` prints.
#include "harness/scenario/artefact_reader.h"
#include "harness/scenario/assemble_server.h"
#include "harness/scenario/identity.h"
#include "harness/scenario/scenario.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

// Resolved calls a few things otherwise than the language does.
std::string language_key(const std::string& key) {
  if (key == "device") return "target.native.device";
  if (key == "collective_deadline_ms") return "parallel.collective_deadline";
  return key;
}

std::string origin_of(const Variant& variant, const std::string& key, std::size_t rank) {
  const auto find = [&](const std::string& name) -> const std::string* {
    const auto it = variant.origins.find(name);
    return it == variant.origins.end() ? nullptr : &it->second;
  };
  const std::string name = language_key(key);
  if (const auto* own = find("ranks." + std::to_string(rank) + "." + name)) return *own;
  if (const auto* own = find(name)) return *own;
  if (const auto* own = find(key)) return *own;
  return "default";
}

void flatten(const json& value, const std::string& key, json& out) {
  if (value.is_object()) {
    for (const auto& [name, child] : value.items()) {
      flatten(child, key.empty() ? name : key + "." + name, out);
    }
    return;
  }
  out[key] = value;
}

}  // namespace

nlohmann::json resolve_json(const Variant& variant) {
  json out;
  out["schema"] = "resolve/1.0";
  out["variant"] = variant.name;
  out["identity"] = variant.identity;
  out["behaviours"] = variant.behaviours;
  const Target& target = variant.target;
  const bool command = target.kind == Target::Kind::kCommand;
  json& shown = out["target"];
  shown["kind"] = target.server ? "server" : command ? "command" : "native";
  if (target.server) shown["server"] = server_json(*target.server);
  if (target.cold_cache) shown["cache"] = "cold";
  if (command) shown["argv"] = target.argv;
  if (!target.cwd.empty()) shown["cwd"] = target.cwd;
  shown["env"] = json::array();  // names only: values may be secrets
  for (const auto& [name, value] : target.env) shown["env"].push_back(name);
  shown["phases"] = target.phases;
  shown["deadlines_s"] = target.deadline_s;
  if (target.silence_s) shown["silence_s"] = *target.silence_s;
  if (target.memory_bytes) shown["memory_bytes"] = *target.memory_bytes;
  if (!variant.artefact.empty()) out["artefact"] = describe(variant.artefact);
  json& expect = out["expect"];
  expect = json::object();
  if (variant.expect.outcome) expect["outcome"] = *variant.expect.outcome;
  if (variant.expect.phase) expect["phase"] = *variant.expect.phase;
  if (!variant.expect.contracts.empty()) expect["contract"] = variant.expect.contracts;
  for (const auto& [figure, bound] : variant.expect.figures) expect["figures"][figure] = bound.text;
  out["values"] = json::array();
  json first = json::object();
  for (std::size_t rank = 0; rank < variant.ranks.size(); ++rank) {
    json document = to_json(variant.ranks[rank]);
    document.erase("schema");
    json flat = json::object();
    flatten(document, "", flat);
    for (const auto& [key, value] : flat.items()) {
      // Ranks other than the first: what is different there.
      if (rank > 0 && first[key] == value) continue;
      const std::string name =
          (rank > 0 ? "ranks." + std::to_string(rank) + "." : "") + language_key(key);
      out["values"].push_back(
          {{"key", name}, {"value", value}, {"origin", origin_of(variant, key, rank)}});
    }
    if (rank == 0) first = std::move(flat);
  }
  return out;
}

}  // namespace warmgate::scenario
