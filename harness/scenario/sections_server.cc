// target.server: the words of it.
#include "harness/scenario/field_makers.h"
#include "harness/scenario/sections.h"

namespace warmgate::scenario {

using namespace makers;

namespace {

// No field has a fallback: the table would then give every scenario a server.

Field words(std::string_view name, std::string_view meaning, std::size_t at_least = 1) {
  Field out = list(name, meaning, element(Type::kText));
  out.min_items = at_least;
  return out;
}

// What one command of a server target is: at the target itself, and for each of its members.
std::vector<Field> member_fields() {
  return {words("command",
                "program and arguments, never through a shell; {port} {host} {model} {run} are "
                "filled in; default the preset's"),
          words("args", "appended to the command", 0),
          make("port", Type::kPort, "auto, none, or a number"),
          text("host", "address that it listens on; default 127.0.0.1"),
          text("cwd", "its folder; default the scenario's"),
          text("log", "grammar of its log, by name; default the preset's")};
}

Field member() {
  std::vector<Field> fields = member_fields();
  fields.push_back(name("role", "what it is for: router, prefill, decode, node"));
  fields.push_back(
      named("env", "added to the target's environment", Keys::kEnvironment, element(Type::kText)));
  Field offset =
      ranged("clock_offset", Type::kSeconds,
             "seconds that its log's clock is ahead of this machine's; may be negative. Taken off "
             "the times that the log prints; events stand at the times of arrival",
             -1e6, 1e6);
  fields.push_back(std::move(offset));
  return object("", "one command of several", std::move(fields));
}

Field requests() {
  const double most = static_cast<double>(kMaxInteger);
  return object("requests", "how requests are written; what is asked for stands in workload",
                {integer("first_id",
                         "smallest token id of the random prompts; default the preset's", 0, most),
                 integer("last_id", "largest token id of them", 1, most),
                 seconds("timeout", "of one request; default 120 s"),
                 integer("concurrency", "requests under way at once; default 1", 1, 1024),
                 text("adapter", "name that requests of class adapter ask for"),
                 text("grammar", "what answers of class grammar have to match"),
                 text("model", "name in the body; default what the server lists first")});
}

}  // namespace

Field server_section(std::vector<Field> common) {
  std::vector<Field> fields = {
      text("preset", "what is known of the engine: a file of fixtures/servers by name"),
      text("version", "its release: picks the preset's command form; default the newest"),
      list("with", "switches of the preset to add to each command and environment",
           choice("", "", {"determinism", "weightless"})),
      text("model", "{model} of the commands; a path is looked for before anything starts")};
  for (Field& field : member_fields()) fields.push_back(std::move(field));
  fields.push_back(
      named("members", "several commands that are one target, by name", Keys::kMember, member()));
  fields.push_back(name("ask",
                        "the member that gets the requests; default a router, else the "
                        "last that opens a port"));
  fields.push_back(words("stop",
                         "program and arguments that end what a killed command would leave alive "
                         "(docker stop, kubectl delete); run before the group is killed",
                         0));
  fields.push_back(seconds("stop_deadline", "of stop; default 30 s"));
  fields.push_back(named("cache", "stores and their state at the start: cold, warm, or a folder",
                         Keys::kStore, element(Type::kText)));
  fields.push_back(requests());
  for (Field& field : common) fields.push_back(std::move(field));
  Field out = object("server", "an HTTP inference server that nobody changed", std::move(fields));
  out.either = {{"members"}, {"command", "args", "port", "host", "cwd", "log"}};
  return out;
}

}  // namespace warmgate::scenario
