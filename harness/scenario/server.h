// `target: {server: …}`: any HTTP inference server, or several commands that are one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace warmgate::scenario {

/// One command of a server target. Words of argv, values of env and cwd may hold {port} {host}
/// {model} {run} (the run's private folder), and {port:NAME} {host:NAME} of another member.
struct ServerMember {
  std::string name;               // "server" where the target is one command
  std::string role;               // free text for reports: router, prefill, decode, node; "" = none
  std::vector<std::string> argv;  // empty: the preset's command
  std::vector<std::string> args;  // appended to argv, or to the preset's command
  std::map<std::string, std::string> env;  // over the target's
  std::string cwd;                         // "" = the scenario file's folder
  std::string host = "127.0.0.1";          // where it is asked, and {host}
  int port = 0;                            // 0 = a free one is chosen
  bool has_port = true;                    // false: it opens none; its log alone is followed
  std::string log;                         // grammar of its log; "" = the preset's
  double clock_offset_s = 0;               // its log's clock minus this machine's; 0 on one machine
};

/// How requests are written, where that is not the preset's business.
struct RequestRules {
  std::int64_t first_id = 0, last_id = 0;  // random prompt ids lie in between; 0, 0 = the preset's
  double timeout_s = 120;                  // of one request; more is a failed request
  std::int64_t concurrency = 1;            // requests under way at once
  std::string adapter;                     // class adapter: the name that is asked for
  std::string grammar;                     // class grammar: what the answer has to match
  std::string model;                       // name in the body; "" = what the server lists first
};

struct ServerTarget {
  std::vector<std::string> with;      // switches of the preset to add: determinism, weightless
  std::string preset;                 // name of a file in fixtures/servers
  std::string version;                // picks the preset's command form; "" = the newest
  std::string model;                  // {model}; a path is looked for before anything starts
  std::vector<ServerMember> members;  // in file order; at least one; index = rank
  std::string asked;                  // name of the member that gets the requests
  std::vector<std::string> stop;      // run before the group is killed; empty: the preset's, if any
  double stop_deadline_s = 30;        // of `stop`; it is killed then, and the group after it
  /// Store → cold, warm, or a folder (absolute); stores that are not named are left as they are.
  std::map<std::string, std::string> cache;
  RequestRules requests;
  /// What the scenario's `workload` asks for, one entry a group; request_class is greedy, seeded,
  /// logprobs, grammar or adapter.
  struct Group {
    std::int64_t requests = 0, prompt_tokens = 0, output_tokens = 0;
    std::string request_class = "greedy";
  };
  std::vector<Group> workload;

  const ServerMember* member(const std::string& name) const {
    for (const ServerMember& each : members) {
      if (each.name == name) return &each;
    }
    return nullptr;
  }
};

/// The classes that a request may declare.
inline constexpr const char* kRequestClasses[] = {"greedy", "seeded", "logprobs", "grammar",
                                                  "adapter"};

}  // namespace warmgate::scenario
