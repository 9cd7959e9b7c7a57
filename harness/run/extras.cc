#include "harness/run/extras.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/contract/external.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using scenario::Node;
using scenario::Problems;

std::pair<std::string, std::size_t> plain_pattern(const std::string& pattern) {
  std::string out;
  std::size_t groups = 0, value_group = 0;
  bool escaped = false, in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    out += c;
    if (escaped) {
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      if (pattern.compare(i + 1, 1, "?") != 0) {
        ++groups;
        continue;
      }
      const bool python = pattern.compare(i + 1, 3, "?P<") == 0;
      const std::size_t name_at = i + (python ? 4 : 3);
      const bool named =
          python || (pattern.compare(i + 1, 2, "?<") == 0 && name_at < pattern.size() &&
                     pattern[name_at] != '=' && pattern[name_at] != '!');
      if (!named) continue;
      const std::size_t end = pattern.find('>', name_at);
      if (end == std::string::npos) throw std::runtime_error("a group's name has no end '>'");
      ++groups;
      if (pattern.substr(name_at, end - name_at) == "value") value_group = groups;
      i = end;
    }
  }
  if (value_group == 0) throw std::runtime_error("the pattern has no group (?<value>...)");
  return {out, value_group};
}

namespace {

// std::regex recurses per character; lines of a log that are longer are no lines for people.
constexpr std::size_t kLongestLine = 4096;

std::optional<double> number_in(const std::string& text) {
  const char* begin = text.c_str();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  if (end == begin || *end != '\0') return std::nullopt;
  return value;
}

void search_lines(const Metric& metric, const std::string& text, std::optional<double>& last) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(at, std::min(end - at, kLongestLine));
    std::smatch match;
    if (std::regex_search(line, match, *metric.log)) {
      if (const auto value = number_in(match[metric.log_group].str())) last = value;
    }
    at = end + 1;
  }
}

std::optional<double> from_log(const Metric& metric, const std::vector<verdict::Output>& outputs) {
  std::optional<double> last;
  for (const verdict::Output& output : outputs) {
    search_lines(metric, output.head, last);
    for (const std::string& line : output.matched) search_lines(metric, line, last);
    search_lines(metric, output.tail, last);
  }
  return last;
}

std::optional<double> from_event(const Metric& metric, const trace::Trace& trace) {
  const nlohmann::json::json_pointer pointer(metric.pointer);
  for (auto event = trace.events.rbegin(); event != trace.events.rend(); ++event) {
    if (event->ev != metric.event || !event->body.contains(pointer)) continue;
    const nlohmann::json& value = event->body.at(pointer);
    if (value.is_number()) return value.get<double>();
  }
  return std::nullopt;
}

/// Reads one map of a metrics or contracts file, key by key; what is wrong goes into problems.
class MapReader {
 public:
  MapReader(const Node& node, std::vector<std::string> keys, Problems& problems)
      : node_(node), problems_(problems) {
    if (!node.is_map()) {
      problems.add(node, "must be a map with the keys " + scenario::list_of(keys));
      return;
    }
    for (const Node::Entry& entry : node.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
      problems.add(entry.place, node.path + "." + entry.key,
                   "unknown key; one of " + scenario::list_of(keys) +
                       scenario::did_you_mean(entry.key, keys));
    }
  }
  std::string text(std::string_view key, bool required = false) {
    const auto value = node_.find(key);
    if (!value) {
      if (required) problems_.add(node_, fmt::format("the key '{}' is missing", key));
      return {};
    }
    if (!value->is_scalar()) {
      problems_.add(*value, "must be text");
      return {};
    }
    return value->text;
  }
  const Node& at(std::string_view key) const {
    const auto value = node_.find(key);
    return value ? *value : node_;
  }

 private:
  const Node& node_;
  Problems& problems_;
};

void read_metric(const Node& node, Problems& problems, std::vector<Metric>& out) {
  MapReader read(node,
                 {"name", "unit", "direction", "meaning", "log", "event", "pointer", "prometheus"},
                 problems);
  Metric metric;
  metric.name = read.text("name", true);
  metric.unit = read.text("unit", true);
  metric.meaning = read.text("meaning");
  metric.event = read.text("event");
  metric.pointer = read.text("pointer");
  metric.prometheus = read.text("prometheus");
  const std::string direction = read.text("direction"), log = read.text("log");
  if (direction == "lower") metric.better = trace::Direction::kLower;
  if (direction == "higher") metric.better = trace::Direction::kHigher;
  if (!direction.empty() && metric.better == trace::Direction::kNone && direction != "none") {
    problems.add(read.at("direction"), "must be lower, higher or none");
  }
  if (trace::find_figure(metric.name) != nullptr) {
    problems.add(read.at("name"), "is the name of a built-in figure; give it one of its own");
  }
  const int sources =
      int{!log.empty()} + int{!metric.event.empty()} + int{!metric.prometheus.empty()};
  if (sources != 1) problems.add(node, "needs exactly one of log, event, prometheus");
  if (metric.event.empty() != metric.pointer.empty()) {
    problems.add(node, "event and pointer belong together");
  }
  try {
    if (!metric.pointer.empty()) (void)nlohmann::json::json_pointer(metric.pointer);
  } catch (const nlohmann::json::exception&) {
    problems.add(read.at("pointer"), "is no JSON pointer; write /bytes or /pools/kv");
  }
  if (!log.empty()) try {
      const auto [plain, group] = plain_pattern(log);
      metric.log.emplace(plain, std::regex::ECMAScript | std::regex::optimize);
      metric.log_group = group;
    } catch (const std::exception& error) {
      problems.add(read.at("log"), std::string("is no usable pattern: ") + error.what());
    }
  out.push_back(std::move(metric));
}

// The list under `key`, or the document itself as the only element.
template <typename F>
void each_entry(const Node& root, std::string_view key, Problems& problems, F&& f) {
  const auto list = root.find(key);
  if (!list) return f(root);
  if (!list->is_list()) return problems.add(*list, "must be a list");
  for (const auto& item : list->items) f(*item);
}

template <typename T>
void refuse_twins(const std::vector<T>& things, const char* what) {
  std::set<std::string> seen;
  for (const T& thing : things) {
    if (seen.insert(thing.name).second) continue;
    throw scenario::ScenarioError(
        {{"", 0, 0, thing.name, fmt::format("two {} have this name", what)}});
  }
}

}  // namespace

std::optional<double> measure(const Metric& metric, const trace::Trace& trace,
                              const std::vector<verdict::Output>& outputs) {
  if (metric.log) return from_log(metric, outputs);
  if (!metric.event.empty()) return from_event(metric, trace);
  return std::nullopt;  // no native or command target has Prometheus samples
}

Extras load_extras(const std::vector<fs::path>& metrics, const std::vector<fs::path>& contracts) {
  Problems problems;
  Extras extras;
  for (const fs::path& file : metrics) {
    const auto root = scenario::read_yaml(file, file.string(), problems);
    if (!root) continue;
    each_entry(*root, "metrics", problems,
               [&](const Node& node) { read_metric(node, problems, extras.metrics); });
  }
  problems.throw_if_any();
  for (const fs::path& file : contracts) {
    for (auto& contract : contract::load_external_contracts(file)) {
      extras.contracts.push_back(std::move(contract));
    }
  }
  refuse_twins(extras.metrics, "metrics");
  refuse_twins(extras.contracts, "contracts");
  return extras;
}

}  // namespace warmgate::run
