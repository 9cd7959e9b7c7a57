// What single values of a server target cannot show.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "harness/scenario/assemble_server.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/safe_values.h"

namespace warmgate::scenario {
namespace {

class ServerCheck {
 public:
  ServerCheck(const ServerTarget& server, const Node& node, const Report& report)
      : server_(server), node_(node), report_(report) {}

  void run(const NodePtr& workload) {
    const NodePtr members = node_.find("members");
    if (members && members->entries.empty()) say(*members, "no member is named");
    for (const ServerMember& member : server_.members) {
      const NodePtr written = members ? members->find(member.name) : nullptr;
      check(member, written ? *written : node_);
    }
    ports();
    for (const auto& [name, value] : texts_of(node_.find("env"))) place_holders(*value);
    if (const NodePtr stop = node_.find("stop")) words(*stop);
    asked();
    requests(workload);
    if (const NodePtr model = node_.find("model")) word(*model, "a path or a model's name");
    for (const auto& [name, value] : texts_of(node_.find("cache"))) store(name, *value);
  }

 private:
  void say(const Node& at, const std::string& what) { report_(at.place, at.path, what); }

  static std::vector<std::pair<std::string, NodePtr>> texts_of(const NodePtr& map) {
    std::vector<std::pair<std::string, NodePtr>> out;
    if (!map) return out;
    for (const Node::Entry& entry : map->entries) out.emplace_back(entry.key, entry.value);
    return out;
  }

  // What the preset puts into a command as one word. A file of such a name is there as ./-name.
  void word(const Node& node, const std::string& what) {
    if (node.text.empty()) say(node, "empty; " + what);
    if (has_control(node.text)) say(node, shown(node.text) + " holds control characters");
    if (node.text.rfind('-', 0) == 0) {
      say(node, fmt::format("{} begins with '-', so a program would take it for an option; {}",
                            shown(node.text), what));
    }
  }

  // Its files are counted, watched and copied, and the engine writes into it.
  void store(const std::string& name, const Node& node) {
    const std::string& text = node.text;
    if (text.empty() || text == "copy:") {
      say(node, "expected cold, warm, or a folder, got nothing");
    }
    const auto asked = server_.cache.find(name);
    if (asked == server_.cache.end() || text.empty() || text == "cold" || text == "warm") return;
    const std::string folder =
        asked->second.rfind("copy:", 0) == 0 ? asked->second.substr(5) : asked->second;
    if (const std::string why = why_no_store(folder); !why.empty())
      say(node, fmt::format("{} is {}, and no store", shown(folder), why));
    // A word that is no path is a slip, not a folder that a machine lacks.
    std::error_code failed;
    if (text.find('/') == text.npos && text.find(':') == text.npos &&
        !std::filesystem::is_directory(folder, failed))
      say(node, fmt::format("expected cold, warm, or a folder; there is no folder {}{}",
                            shown(text), did_you_mean(text, {"cold", "warm"})));
  }

  void check(const ServerMember& member, const Node& at) {
    if (const NodePtr host = at.find("host"); host && !is_host(host->text))
      say(*host, shown(host->text) + " is no name or address of a host");
    if (const NodePtr cwd = at.find("cwd"); cwd && has_control(cwd->text))
      say(*cwd, shown(cwd->text) + " holds control characters");

    if (member.argv.empty() && server_.preset.empty()) {
      report_(at.place, at.path + ".command",
              "missing; program and arguments, or a preset that knows them");
    }
    for (const char* key : {"command", "args"}) {
      if (const NodePtr list = at.find(key)) words(*list);
    }
    for (const auto& [name, value] : texts_of(at.find("env"))) place_holders(*value);
    if (const NodePtr cwd = at.find("cwd")) place_holders(*cwd);
    if (member.port != 0 || !member.has_port) return;
    // A port that nobody is told about is one that nobody opens.
    const NodePtr command = at.find("command");
    if (command && server_.preset.empty() && !mentions(at, "{port}")) {
      say(*command,
          "{port} stands nowhere in its command, args and env; put it where the port is given, or "
          "give port as a number, or none");
    }
  }

  bool mentions(const Node& at, const std::string& what) const {
    const auto in = [&](const NodePtr& node, const auto& self) -> bool {
      if (!node) return false;
      if (node->text.find(what) != std::string::npos) return true;
      for (const NodePtr& item : node->items)
        if (self(item, self)) return true;
      for (const Node::Entry& entry : node->entries)
        if (self(entry.value, self)) return true;
      return false;
    };
    return in(at.find("command"), in) || in(at.find("args"), in) || in(at.find("env"), in) ||
           in(node_.find("env"), in);
  }

  void words(const Node& list) {
    for (const NodePtr& item : list.items) place_holders(*item);
  }

  // {port} and its like; braces that hold anything else are the program's (JSON arguments).
  void place_holders(const Node& node) {
    const std::string& text = node.text;
    for (std::size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
      const std::size_t end = text.find('}', at);
      if (end == std::string::npos) return;
      const std::string name = text.substr(at + 1, end - at - 1);
      const std::size_t colon = name.find(':');
      const std::string head = name.substr(0, colon);
      if (colon != std::string::npos && (head == "port" || head == "host")) {
        member_port(node, name.substr(colon + 1), head);
      } else if (name == "model" && server_.model.empty()) {
        say(node, "{model} is not given; add model");
      } else if (colon == std::string::npos && is_word(name)) {
        const std::vector<std::string> known = {"port", "host", "model", "run"};
        if (std::find(known.begin(), known.end(), name) == known.end() && nearest(name, known)) {
          say(node, "{" + name + "} is not filled in" + did_you_mean(name, known));
        }
      }
    }
  }

  void member_port(const Node& node, const std::string& name, const std::string& what) {
    const ServerMember* other = server_.member(name);
    if (other == nullptr) {
      say(node, fmt::format("there is no member {}{}", shown(name), did_you_mean(name, names())));
    } else if (what == "port" && !other->has_port) {
      say(node, fmt::format("member {} opens no port", name));
    }
  }

  static bool is_word(const std::string& text) {
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == text.npos;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const ServerMember& member : server_.members) out.push_back(member.name);
    return out;
  }

  void ports() {
    std::set<std::pair<std::string, int>> taken;
    for (const ServerMember& member : server_.members) {
      if (member.port == 0 || taken.insert({member.host, member.port}).second) continue;
      const NodePtr members = node_.find("members");
      const NodePtr own = members ? members->find(member.name) : nullptr;
      const NodePtr port = own ? own->find("port") : nullptr;
      say(port ? *port : node_, fmt::format("two members have port {}", member.port));
    }
  }

  void asked() {
    const NodePtr ask = node_.find("ask");
    const ServerMember* member = server_.member(server_.asked);
    if (ask && member == nullptr) {
      say(*ask, fmt::format("there is no member {}{}", shown(server_.asked),
                            did_you_mean(server_.asked, names())));
    } else if (member == nullptr || !member->has_port) {
      say(ask ? *ask : node_, "no member opens a port, so nobody can be asked anything");
    }
  }

  void requests(const NodePtr& workload) {
    const RequestRules& rules = server_.requests;
    const NodePtr node = node_.find("requests");
    if (rules.last_id != 0 && rules.last_id <= rules.first_id) {
      say(node ? *node->find("last_id") : node_,
          fmt::format("expected more than first_id, {}", rules.first_id));
    }
    const std::vector<std::string> known(std::begin(kRequestClasses), std::end(kRequestClasses));
    for (const ServerTarget::Group& group : server_.workload) {
      const std::string& name = group.request_class;
      const Node& at = workload ? *workload : node_;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        say(at, fmt::format("{} is no class of requests that a server is asked for{}", shown(name),
                            nearest(name, known) ? did_you_mean(name, known)
                                                 : "; there are " + list_of(known)));
      }
      const bool lacks = (name == "adapter" && rules.adapter.empty()) ||
                         (name == "grammar" && rules.grammar.empty());
      if (lacks) {
        say(at, fmt::format("requests of class {} need target.server.requests.{}", name, name));
      }
    }
  }

  const ServerTarget& server_;
  const Node& node_;
  const Report& report_;
};

}  // namespace

void validate_server(const ServerTarget& server, const Node& node, const NodePtr& workload,
                     const Report& report) {
  ServerCheck(server, node, report).run(workload);
}

}  // namespace warmgate::scenario
