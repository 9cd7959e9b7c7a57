#include "harness/target/server/preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/scenario/check.h"
#include "harness/scenario/files.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/scalars.h"
#include "harness/target/server/preset_fields.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::target {
namespace {

using nlohmann::json;
using scenario::Node;
using scenario::NodePtr;
using scenario::Problems;
namespace fs = std::filesystem;

// Plain words of YAML as JSON means them: a body's 0 is a number, "0" a text.
json free_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kList: {
      json out = json::array();
      for (const NodePtr& item : node.items) out.push_back(free_json(*item));
      return out;
    }
    case Node::Kind::kMap: {
      json out = json::object();
      for (const Node::Entry& entry : node.entries) out[entry.key] = free_json(*entry.value);
      return out;
    }
    case Node::Kind::kScalar:
      break;
  }
  if (node.quoted) return node.text;
  if (const auto value = scenario::read_integer(node.text)) return *value.value;
  if (const auto value = scenario::read_real(node.text)) return *value.value;
  if (const auto value = scenario::read_bool(node.text)) return *value.value;
  return node.text;
}

std::vector<std::string> texts(const json& from, const char* key) {
  return from.value(key, json::array()).get<std::vector<std::string>>();
}

Switches switches_of(const json& all, const char* key) {
  const json from = all.value(key, json::object());
  Switches out;
  out.argv = texts(from, "argv");
  if (from.contains("env")) out.env = from["env"].get<std::map<std::string, std::string>>();
  out.source = from.value("source", "");
  return out;
}

SpanFacts spans_of(const json& all) {
  const json from = all.value("spans", json::object());
  SpanFacts out;
  out.argv = texts(from, "argv");
  if (from.contains("env")) out.env = from["env"].get<std::map<std::string, std::string>>();
  if (from.contains("phases")) {
    out.phases = from["phases"].get<std::map<std::string, std::string>>();
  }
  out.pid = from.value("pid", "");
  out.process = from.value("process", "");
  out.source = from.value("source", "");
  return out;
}

MetricsEndpoint metrics_of(const json& all, const char* key) {
  const json from = all.value(key, json::object());
  return {from.value("path", ""), from.value("kind", "none"), texts(from, "needs")};
}

Completion completion_of(const json& from, const Node& node) {
  Completion out;
  out.path = from.value("path", "");
  out.prompt = from.value("prompt", out.prompt);
  if (const NodePtr body = node.find("body")) out.body = free_json(*body);
  if (const NodePtr classes = node.find("classes")) {
    for (const Node::Entry& entry : classes->entries) {
      out.classes[entry.key] = free_json(*entry.value);
    }
  }
  out.stream = from.value("stream", out.stream);
  out.done = from.value("done", "");
  out.text = texts(from, "text");
  out.text_so_far = from.value("text_so_far", false);
  out.tokens = texts(from, "tokens");
  out.prompt_tokens = texts(from, "prompt_tokens");
  out.error = texts(from, "error");
  if (from.contains("shows")) {
    out.shows = from["shows"].get<std::map<std::string, std::vector<std::string>>>();
  }
  if (from.contains("figures")) {
    out.figures = from["figures"].get<std::map<std::string, std::vector<std::string>>>();
  }
  out.first_id = from.value("first_id", out.first_id);
  out.last_id = from.value("last_id", out.last_id);
  return out;
}

void read_lists(const json& all, ServerPreset& out) {
  for (const json& from : all.value("commands", json::array())) {
    out.commands.push_back({from.value("from", ""), from.value("until", ""), texts(from, "command"),
                            from.value("source", "")});
  }
  for (const json& from : all.value("health", json::array())) {
    out.health.push_back({from.value("path", ""), from.value("ok", 200), from.value("proves", ""),
                          from.value("means", ""), from.value("while_hung", true)});
  }
  for (const json& from : all.value("metric_names", json::array())) {
    out.metric_names.push_back({from.value("theirs", ""), from.value("ours", ""),
                                from.value("kind", ""), from.value("label", "")});
  }
  for (const json& from : all.value("stores", json::array())) {
    out.stores.push_back({from.value("name", ""), from.value("variable", ""),
                          from.value("folder", ""), from.value("below", ""),
                          from.value("holds", ""), texts(from, "set"), texts(from, "ignore")});
  }
}

ServerPreset read(const json& all, const Node& tree) {
  ServerPreset out;
  out.name = all.value("preset", "");
  out.engine = all.value("engine", "");
  out.about = all.value("about", "");
  read_lists(all, out);
  out.phases = texts(all, "phases");
  out.models = all.value("models", "");
  out.model_places = texts(all, "model_places");
  out.metrics = metrics_of(all, "metrics");
  out.more_metrics = metrics_of(all, "more_metrics");
  if (const NodePtr node = tree.find("completion")) {
    out.completion = completion_of(all.value("completion", json::object()), *node);
  }
  out.log = all.value("log", "");
  out.offline = switches_of(all, "offline");
  out.determinism = switches_of(all, "determinism");
  out.weightless = switches_of(all, "weightless");
  out.spans = spans_of(all);
  const json processes = all.value("processes", json::object());
  out.processes.tree = processes.value("tree", "");
  out.processes.workers = texts(processes, "workers");
  out.processes.failed_start = processes.value("failed_start", "");
  out.processes.on_sigterm = processes.value("on_sigterm", "");
  out.processes.grace_s = processes.value("grace", out.processes.grace_s);
  out.processes.settle_s = processes.value("settle", out.processes.settle_s);
  const json builds = all.value("builds", json::object());
  out.builds = {builds.value("package", ""),   builds.value("wheels", ""),
                texts(builds, "python_path"),  texts(builds, "native_paths"),
                texts(builds, "native_files"), builds.value("source", "")};
  out.stop = texts(all, "stop");
  out.deadline_s = all.value("deadline", out.deadline_s);
  out.silence_s = all.value("silence", out.silence_s);
  return out;
}

// What the table cannot say: names that have to lead somewhere, ranges that have to fit.
class PresetCheck {
 public:
  PresetCheck(const Node& tree, Problems& problems) : tree_(tree), problems_(problems) {}

  void run(const ServerPreset& preset, const fs::path& file) {
    if (const NodePtr name = tree_.find("preset"); name && name->text != file.stem().string()) {
      problems_.add(*name, scenario::shown(name->text) + " is not the name of the file");
    }
    forms(preset);
    paths();
    metrics(preset);
    completion(preset);
    stores(preset);
  }

 private:
  void forms(const ServerPreset& preset) {
    const NodePtr list = tree_.find("commands");
    for (std::size_t i = 0; list && i < list->items.size() && i < preset.commands.size(); ++i) {
      const CommandForm& form = preset.commands[i];
      if (!form.from.empty() && !form.until.empty() && !older_version(form.from, form.until)) {
        problems_.add(*list->items[i],
                      fmt::format("no release is from {} on and before {}", form.from, form.until));
      }
      if (i > 0 && !older_version(form.from, preset.commands[i - 1].from)) {
        problems_.add(*list->items[i], "the newest form comes first, each older one after it");
      }
      for (const char* word : {"{model}", "{port}"}) {
        const bool there = std::any_of(
            form.argv.begin(), form.argv.end(),
            [&](const std::string& arg) { return arg.find(word) != std::string::npos; });
        if (!there) problems_.add(*list->items[i], std::string(word) + " stands nowhere in it");
      }
    }
  }

  void path(const NodePtr& node) {
    if (node && (node->text.empty() || node->text[0] != '/')) {
      problems_.add(*node,
                    "expected a path that begins with /, got " + scenario::shown(node->text));
    }
  }
  void pointers(const NodePtr& list) {
    for (std::size_t i = 0; list && i < list->items.size(); ++i) path(list->items[i]);
  }
  void paths() {
    if (const NodePtr health = tree_.find("health")) {
      for (const NodePtr& item : health->items) path(item->find("path"));
    }
    path(tree_.find("models"));
    if (const NodePtr completion = tree_.find("completion")) {
      path(completion->find("path"));
      for (const char* key : {"text", "tokens", "prompt_tokens", "error"}) {
        pointers(completion->find(key));
      }
      for (const char* key : {"shows", "figures"}) {
        const NodePtr map = completion->find(key);
        if (!map) continue;
        for (const Node::Entry& entry : map->entries) pointers(entry.value);
      }
    }
    for (const char* key : {"metrics", "more_metrics"}) {
      const NodePtr metrics = tree_.find(key);
      const NodePtr kind = metrics ? metrics->find("kind") : nullptr;
      if (!kind || kind->text == "none") continue;
      const NodePtr at = metrics->find("path");
      at ? path(at) : problems_.add(*metrics, "path is missing");
    }
  }

  void metrics(const ServerPreset& preset) {
    std::vector<std::string> figures;
    for (const trace::FigureRule& rule : trace::figures()) figures.emplace_back(rule.name);
    const NodePtr list = tree_.find("metric_names");
    for (std::size_t i = 0; list && i < list->items.size() && i < preset.metric_names.size(); ++i) {
      const MetricName& metric = preset.metric_names[i];
      if (trace::find_figure(metric.ours) == nullptr) {
        problems_.add(*list->items[i]->find("ours"),
                      scenario::shown(metric.ours) + " is no figure" +
                          scenario::did_you_mean(metric.ours, figures));
      }
      if ((metric.kind == "label") != !metric.label.empty()) {
        problems_.add(*list->items[i], "a label belongs to kind label, and to no other");
      }
    }
  }

  void completion(const ServerPreset& preset) {
    const NodePtr node = tree_.find("completion");
    if (!node) return;
    const std::string body = preset.completion.body.dump();
    for (const char* word : {"{prompt}", "{output_tokens}"}) {
      if (body.find(word) == std::string::npos) {
        problems_.add(*node, std::string(word) + " stands nowhere in body");
      }
    }
    const std::vector<std::string> known(std::begin(scenario::kRequestClasses),
                                         std::end(scenario::kRequestClasses));
    for (const char* key : {"classes", "shows"}) {
      const NodePtr classes = node->find(key);
      for (std::size_t i = 0; classes && i < classes->entries.size(); ++i) {
        const Node::Entry& entry = classes->entries[i];
        if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
          problems_.add(entry.place, entry.value->path,
                        scenario::shown(entry.key) + " is no class of requests" +
                            scenario::did_you_mean(entry.key, known));
        }
      }
    }
    if (preset.completion.last_id < preset.completion.first_id) {
      problems_.add(*node, "last_id is below first_id");
    }
  }

  void stores(const ServerPreset& preset) {
    const NodePtr list = tree_.find("stores");
    std::set<std::string> seen;
    for (std::size_t i = 0; list && i < list->items.size() && i < preset.stores.size(); ++i) {
      const CacheStore& store = preset.stores[i];
      const Node& at = *list->items[i];
      if (!seen.insert(store.name).second) problems_.add(at, "two stores are called " + store.name);
      if (!store.below.empty() && (store.below == store.name || !preset.store(store.below))) {
        problems_.add(at, "there is no other store " + scenario::shown(store.below));
      }
      for (const std::string& setting : store.set) {
        const std::size_t equals = setting.find('=');
        if (equals == std::string::npos || equals == 0) {
          problems_.add(at, "expected NAME=VALUE, got " + scenario::shown(setting));
        }
      }
    }
  }

  const Node& tree_;
  Problems& problems_;
};

}  // namespace

bool older_version(const std::string& a, const std::string& b) {
  const auto part = [](const std::string& text, std::size_t& at) -> long {
    while (at < text.size() && (text[at] < '0' || text[at] > '9')) ++at;
    long value = -1;  // past the end: 1 < 1.0
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    at = static_cast<std::size_t>(end - text.data());
    return error == std::errc() ? value : -1;
  };
  std::size_t i = 0, k = 0;
  while (i < a.size() || k < b.size()) {
    const long x = part(a, i), y = part(b, k);
    if (x != y) return x < y;
    if (x < 0) return false;
  }
  return false;
}

const CommandForm* ServerPreset::command_for(const std::string& version) const {
  for (const CommandForm& form : commands) {
    if (version.empty()) return &form;
    const bool late_enough = form.from.empty() || !older_version(version, form.from);
    const bool early_enough = form.until.empty() || older_version(version, form.until);
    if (late_enough && early_enough) return &form;
  }
  return nullptr;
}

const CacheStore* ServerPreset::store(const std::string& wanted) const {
  for (const CacheStore& each : stores) {
    if (each.name == wanted) return &each;
  }
  return nullptr;
}

fs::path presets_folder(const fs::path& fixtures) {
  return scenario::find_fixtures(fixtures) / "servers";
}

std::vector<std::string> preset_names(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") out.push_back(it->path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

ServerPreset load_preset(const fs::path& file) {
  Problems problems;
  scenario::Tainted tainted;
  const scenario::Vocabulary vocabulary = scenario::Vocabulary::with({});
  NodePtr tree = scenario::read_yaml(file, scenario::display(file), problems);
  if (tree) {
    tree = scenario::Checker(problems, vocabulary, tainted).check(tree, server_preset_field());
  }
  problems.throw_if_any();
  ServerPreset out = read(scenario::to_json(*tree, server_preset_field()), *tree);
  PresetCheck(*tree, problems).run(out, file);
  problems.throw_if_any();
  out.path = file;
  return out;
}

ServerPreset find_preset(const std::string& name, const fs::path& folder) {
  const std::vector<std::string> known = preset_names(folder);
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return load_preset(folder / (name + ".yaml"));
  }
  const std::string meant = scenario::did_you_mean(name, known);
  throw scenario::ScenarioError(
      {{scenario::display(folder), 0, 0, "",
        fmt::format("no server preset {}{}", scenario::shown(name),
                    meant.empty() ? "; there are " + scenario::list_of(known) : meant)}});
}

}  // namespace warmgate::target
