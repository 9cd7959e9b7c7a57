#include "harness/scenario/assemble_server.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/scenario/check.h"
#include "harness/scenario/fields.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const Field& server_field() { return *overlay_field().find("target")->find("server"); }

std::vector<std::string> strings_of(const json& from, const char* key) {
  return from.value(key, json::array()).get<std::vector<std::string>>();
}

ServerMember member_of(const json& from, const std::string& name) {
  ServerMember out;
  out.name = name;
  out.role = from.value("role", "");
  out.argv = strings_of(from, "command");
  out.args = strings_of(from, "args");
  if (from.contains("env")) out.env = from["env"].get<std::map<std::string, std::string>>();
  out.cwd = from.value("cwd", "");
  out.host = from.value("host", out.host);
  const std::string port = from.value("port", "auto");
  out.has_port = port != "none";
  if (out.has_port && port != "auto") out.port = std::stoi(port);
  out.log = from.value("log", "");
  out.clock_offset_s = from.value("clock_offset", 0.0);
  return out;
}

// A router if there is one; else the last that opens a port, because routers and front ends are
// written after what they need.
std::string default_asked(const std::vector<ServerMember>& members) {
  std::string last;
  for (const ServerMember& member : members) {
    if (!member.has_port) continue;
    if (member.role == "router") return member.name;
    last = member.name;
  }
  return last;
}

RequestRules rules_of(const json& from) {
  RequestRules out;
  out.first_id = from.value("first_id", out.first_id);
  out.last_id = from.value("last_id", out.last_id);
  out.timeout_s = from.value("timeout", out.timeout_s);
  out.concurrency = from.value("concurrency", out.concurrency);
  out.adapter = from.value("adapter", "");
  out.grammar = from.value("grammar", "");
  out.model = from.value("model", "");
  return out;
}

// Without a workload: three, so that the second can be held against the third.
std::vector<ServerTarget::Group> groups_of(const NodePtr& workload) {
  const json yaml =
      workload ? to_json(*workload, *overlay_field().find("workload")) : json::object();
  std::vector<ServerTarget::Group> out;
  const auto add = [&](const json& from) {
    out.push_back({from.value("requests", std::int64_t{3}),
                   from.value("prompt_tokens", std::int64_t{32}),
                   from.value("output_tokens", std::int64_t{16}), from.value("class", "greedy")});
  };
  if (!yaml.contains("groups")) {
    add(yaml);
  } else {
    for (const json& group : yaml["groups"]) add(group);
  }
  return out;
}

// cold and warm are words; a folder, and what copy: names, is relative to the scenario's.
std::string store_state(const std::string& text, const std::string& folder) {
  if (text == "cold" || text == "warm") return text;
  const std::string copy = text.rfind("copy:", 0) == 0 ? "copy:" : "";
  const std::string rest = text.substr(copy.size());
  if (const char* home = std::getenv("HOME"); home != nullptr && (rest + "/").rfind("~/", 0) == 0)
    return copy + fs::path(home + rest.substr(1)).lexically_normal().string();
  return copy + (fs::path(folder) / rest).lexically_normal().string();
}

}  // namespace

ServerTarget assemble_server(const Node& server, const NodePtr& workload,
                             const std::string& folder) {
  const json all = to_json(server, server_field());
  ServerTarget out;
  out.preset = all.value("preset", "");
  out.version = all.value("version", "");
  out.with = strings_of(all, "with");
  out.model = all.value("model", "");
  if (const NodePtr members = server.find("members")) {
    for (const Node::Entry& entry : members->entries) {
      out.members.push_back(member_of(all["members"][entry.key], entry.key));
    }
  }
  if (out.members.empty()) {
    json alone = all;
    alone.erase("env");  // that is the target's
    out.members.push_back(member_of(alone, "server"));
  }
  out.asked = all.value("ask", default_asked(out.members));
  out.stop = strings_of(all, "stop");
  out.stop_deadline_s = all.value("stop_deadline", out.stop_deadline_s);
  const json cache = all.value("cache", json::object());
  for (const auto& [store, state] : cache.items()) {
    const std::string text = state.get<std::string>();
    out.cache[store] = store_state(text, folder);
  }
  if (all.contains("requests")) out.requests = rules_of(all["requests"]);
  out.workload = groups_of(workload);
  return out;
}

json server_json(const ServerTarget& server) {
  json out = {{"preset", server.preset}, {"asked", server.asked}, {"cache", server.cache}};
  if (!server.version.empty()) out["version"] = server.version;
  if (!server.with.empty()) out["with"] = server.with;
  if (!server.model.empty()) out["model"] = server.model;
  if (!server.stop.empty()) out["stop"] = server.stop;
  json& members = out["members"] = json::array();
  for (const ServerMember& member : server.members) {
    json one = {{"name", member.name}, {"command", member.argv}, {"args", member.args}};
    if (!member.role.empty()) one["role"] = member.role;
    if (!member.cwd.empty()) one["cwd"] = member.cwd;
    if (!member.log.empty()) one["log"] = member.log;
    if (member.clock_offset_s != 0) one["clock_offset_s"] = member.clock_offset_s;
    if (!member.has_port) one["port"] = "none";
    if (member.port != 0) one["port"] = member.port;
    one["env"] = json::array();
    for (const auto& [name, value] : member.env) one["env"].push_back(name);
    members.push_back(std::move(one));
  }
  json& workload = out["workload"] = json::array();
  for (const ServerTarget::Group& group : server.workload) {
    workload.push_back({{"requests", group.requests},
                        {"prompt_tokens", group.prompt_tokens},
                        {"output_tokens", group.output_tokens},
                        {"class", group.request_class}});
  }
  return out;
}

}  // namespace warmgate::scenario
