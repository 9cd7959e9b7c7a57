#include "harness/run/server.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <stdexcept>

#include "harness/explain/reader.h"
#include "harness/target/server/compilers.h"
#include "harness/target/server/server_companion.h"
#include "harness/trace/sha256.h"

extern char** environ;

namespace warmgate::run {

namespace fs = std::filesystem;
using scenario::ServerMember;
using scenario::ServerTarget;
using Values = std::map<std::string, std::string>;

namespace {

// Compiled once for every run of this program; null where this build cannot read logs.
const explain::Grammars* grammars(const fs::path& fixtures) {
  static std::mutex mutex;
  static std::map<std::string, explain::Grammars> loaded;
  if (!explain::available()) return nullptr;
  const std::lock_guard lock(mutex);
  auto it = loaded.find(fixtures.string());
  if (it == loaded.end()) {
    it = loaded.emplace(fixtures.string(), explain::Grammars::standard(fixtures)).first;
  }
  return &it->second;
}

// What the processes will find: ours, with `over` set over it.
Values whole_environment(const Values& over) {
  Values out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : over) out[name] = value;
  return out;
}

class Preparation {
 public:
  Preparation(const scenario::Scenario& scenario, const scenario::Variant& variant,
              const PrepareOptions& options, Prepared& prepared)
      : scenario_(scenario),
        variant_(variant),
        server_(*variant.target.server),
        options_(options),
        prepared_(prepared),
        preset_(preset_of(server_, options.fixtures)),
        home_(fs::absolute(scenario.path).parent_path()) {}

  void run() {
    environment();
    values_["model"] =
        find_model(server_.model, home_, preset_.model_places, offline(), whole_environment(env_));
    values_["run"] = prepared_.dir.path().string();
    ports();
    stores();
    for (std::size_t i = 0; i < server_.members.size(); ++i) add_worker(i);
    stop();
    companion();
  }

 private:
  // Offline switches first, so that a scenario can take them back.
  void environment() {
    env_["PYTHONUNBUFFERED"] = "1";  // else its lines come when a buffer is full
    // Caches default to places below it; a private folder would make every start a cold one.
    const char* tmp = std::getenv("TMPDIR");
    env_["TMPDIR"] = tmp != nullptr && *tmp != '\0' ? tmp : "/tmp";
    for (const auto& [name, value] : preset_.offline.env) env_[name] = value;
    for (const target::Switches* switches : asked_switches()) {
      for (const auto& [name, value] : switches->env) env_[name] = value;
    }
    for (const auto& [name, value] : variant_.target.env) env_[name] = value;
  }

  std::vector<const target::Switches*> asked_switches() const {
    std::vector<const target::Switches*> out;
    for (const std::string& name : server_.with) {
      out.push_back(name == "weightless" ? &preset_.weightless : &preset_.determinism);
    }
    return out;
  }

  // Nobody took a switch back, and the preset's own command looks for the model: a container or
  // another node has downloads of its own.
  bool offline() const {
    for (const auto& [name, value] : preset_.offline.env) {
      const auto it = variant_.target.env.find(name);
      if (it != variant_.target.env.end() && it->second != value) return false;
    }
    for (const ServerMember& member : server_.members) {
      if (!member.argv.empty()) return false;
    }
    return variant_.artefact.kind != scenario::Artefact::Kind::kImage;
  }

  void ports() {
    for (const ServerMember& member : server_.members) {
      target::PortLease lease;
      if (member.has_port) lease = port_of(member);
      ports_.push_back(lease.port());
      values_["port:" + member.name] = std::to_string(lease.port());
      values_["host:" + member.name] = member.host;
      prepared_.ports.push_back(std::move(lease));
    }
  }

  static target::PortLease port_of(const ServerMember& member) {
    if (member.port == 0) return target::PortLease::free_port(member.host);
    target::PortLease lease = target::PortLease::take(member.port);
    const auto who = target::who_listens(member.host, member.port);
    if (who || !lease.held()) {
      throw std::runtime_error(
          fmt::format("port {} of {} is taken by {}", member.port, member.name,
                      who ? *who : "another run of warmgate, which has not opened it yet"));
    }
    return lease;
  }

  Values values_of(std::size_t i) const {
    Values out = values_;
    out["port"] = std::to_string(ports_[i]);
    out["host"] = server_.members[i].host;
    return out;
  }

  void stores() {
    target::StoresSpec spec;
    spec.stores = preset_.stores;
    spec.asked = server_.cache;
    spec.run_dir = prepared_.dir.path();
    Values env = env_;  // a store may lie below {run} by default
    for (auto& [name, value] : env) value = fill_in(value, values_);
    spec.env = whole_environment(env);
    spec.kept_key = kept_key();
    for (const ServerMember& member : server_.members)
      spec.elsewhere = spec.elsewhere || !target::runs_here(member.argv);
    if (const fs::path model = values_["model"]; model.is_absolute()) spec.model = {model};
    stores_ = target::prepare_stores(spec);
    if (!stores_.problems.empty()) throw std::runtime_error(stores_.problems.front());
    // A start that was to be cold and is not would be judged for what it is not. A warm one fills
    // its stores the first time.
    for (const target::PreparedStore& store : stores_.stores) {
      if (store.asked.empty() || store.reached) continue;
      const std::string what =
          fmt::format("store {} is not {}: {}", store.name, store.asked,
                      store.note.empty() ? "it was found " + store.found : store.note);
      if (store.asked != "warm" && store.found != "unknown") throw std::runtime_error(what);
      prepared_.note += (prepared_.note.empty() ? "" : "; ") + what;
    }
    // What moves a store is what the scenario asks for; its own env cannot want something else.
    for (const auto& [name, value] : stores_.env) env_[name] = value;
  }

  // Two artefacts, or one under two settings, never warm each other's stores.
  std::string kept_key() const {
    std::string text = variant_.identity;
    text += "\n" + options_.artefact_hash;
    for (const auto& [name, value] : env_) text += "\n" + name + "=" + value;
    for (const ServerMember& member : server_.members) {
      for (const std::string& word : member.argv) text += "\n" + word;
    }
    return trace::sha256_hex(text).substr(0, 24);
  }

  void add_worker(std::size_t i) {
    const ServerMember& member = server_.members[i];
    const Values values = values_of(i);
    target::WorkerSpec worker;
    worker.rank = static_cast<int>(i);
    const target::CommandForm* form = preset_.command_for(server_.version);
    worker.argv = !member.argv.empty() ? member.argv
                  : form != nullptr    ? form->argv
                                       : std::vector<std::string>();
    if (worker.argv.empty()) throw std::runtime_error("no command for " + member.name);
    for (const target::Switches* switches : asked_switches()) {
      worker.argv.insert(worker.argv.end(), switches->argv.begin(), switches->argv.end());
    }
    worker.argv.insert(worker.argv.end(), member.args.begin(), member.args.end());
    for (std::string& word : worker.argv) word = fill_in(word, values);
    worker.cwd = (home_ / fill_in(member.cwd, values)).lexically_normal().string();
    if (const fs::path program = worker.argv[0];
        program.has_parent_path() && program.is_relative()) {
      worker.argv[0] = (fs::path(worker.cwd) / program).lexically_normal().string();
    }
    worker.env = env_;
    for (const auto& [name, value] : member.env) worker.env[name] = value;
    for (auto& [name, value] : worker.env) value = fill_in(value, values);
    worker.env.try_emplace("WARMGATE_SCENARIO", fs::absolute(scenario_.path).string());
    worker.env.try_emplace("WARMGATE_VARIANT", variant_.name);
    prepared_.spec.workers.push_back(std::move(worker));
  }

  std::size_t asked() const {
    for (std::size_t i = 0; i < server_.members.size(); ++i) {
      if (server_.members[i].name == server_.asked) return i;
    }
    throw std::runtime_error("no member is asked");
  }

  void stop() {
    const std::vector<std::string>& argv = server_.stop.empty() ? preset_.stop : server_.stop;
    target::StopSpec& stop = prepared_.spec.stop;
    const Values values = values_of(asked());
    for (const std::string& word : argv) stop.argv.push_back(fill_in(word, values));
    stop.cwd = home_.string();
    stop.env = prepared_.spec.workers[asked()].env;
    stop.deadline_s = server_.stop_deadline_s;
  }

  void companion() {
    target::ServerCompanionSpec spec;
    spec.asked = asked();
    for (std::size_t i = 0; i < server_.members.size(); ++i) {
      const ServerMember& member = server_.members[i];
      const std::string grammar = member.log.empty() ? preset_.log : member.log;
      spec.members.push_back({member.name, member.host, grammar == "any" ? "" : grammar,
                              static_cast<int>(i), ports_[i], member.clock_offset_s,
                              target::runs_here(member.argv)});
    }
    const scenario::RequestRules& rules = server_.requests;
    target::WorkloadSpec& work = spec.workload;
    work.host = spec.members[spec.asked].host;
    work.port = spec.members[spec.asked].port;
    work.member = spec.members[spec.asked].name;
    work.rank = static_cast<int>(spec.asked);
    work.completion = preset_.completion;
    work.adapter = rules.adapter;
    work.grammar = rules.grammar;
    work.groups = server_.workload;
    work.seed = variant_.ranks.empty() ? 0 : static_cast<std::uint64_t>(variant_.ranks[0].seed);
    work.first_id = rules.first_id;
    work.last_id = rules.last_id;
    work.concurrency = rules.concurrency;
    work.limits.total_s = rules.timeout_s;
    work.limits.first_byte_s = rules.timeout_s;
    work.limits.idle_s = rules.timeout_s;
    spec.model = rules.model;
    spec.stores = stores_;
    spec.gpus = gpus_of(variant_);
    spec.settle_s = prepared_.spec.deadlines.settle_s;
    spec.preset = std::move(preset_);
    prepared_.companion =
        target::make_server_companion(std::move(spec), grammars(options_.fixtures));
    prepared_.spec.companion = prepared_.companion.get();
  }

  const scenario::Scenario& scenario_;
  const scenario::Variant& variant_;
  const ServerTarget& server_;
  const PrepareOptions& options_;
  Prepared& prepared_;
  target::ServerPreset preset_;
  const fs::path home_;
  Values env_, values_;
  std::vector<int> ports_;
  target::PreparedStores stores_;
};

}  // namespace

void prepare_server(const scenario::Scenario& scenario, const scenario::Variant& variant,
                    const PrepareOptions& options, Prepared& prepared) {
  Preparation(scenario, variant, options, prepared).run();
}

void server_deadlines(const target::ServerPreset& preset, target::Deadlines& deadlines) {
  deadlines.default_phase_s = preset.deadline_s;
  deadlines.silence_s = preset.silence_s;
  deadlines.shutdown_grace_s = preset.processes.grace_s;
  deadlines.settle_s = preset.processes.settle_s;
  // The others take a moment to say what they know, and that is the more telling half.
  deadlines.peer_grace_s = 1;
}

}  // namespace warmgate::run
