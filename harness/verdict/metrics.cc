#include "harness/verdict/metrics.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string_view>

namespace warmgate::verdict {
namespace {

// The library's search takes time in the square of it.
constexpr std::size_t kMaxLine = 1024;

void each_line(const Output& output, const std::function<void(std::string_view)>& use) {
  const auto lines = [&](std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      use(text.substr(at, std::min(end - at, kMaxLine)));
      at = end + 1;
    }
  };
  // Matched lines lie between head and tail or in one of them; the last of the file must win.
  lines(output.head);
  for (const std::string& line : output.matched)
    use(std::string_view(line).substr(0, std::min(line.size(), kMaxLine)));
  lines(output.tail);
}

std::optional<double> number(std::string text) {
  std::erase(text, ',');  // 9,222,468
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<double> at_pointer(const nlohmann::json& document, const std::string& pointer) {
  const nlohmann::json::json_pointer where(pointer);
  if (!document.contains(where)) return std::nullopt;
  const nlohmann::json& value = document.at(where);
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  return std::nullopt;
}

std::optional<double> from_log(const Metric& metric, const RunRecord& run) {
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  // Without backtracking: neither stack nor time depends on what a worker printed.
  flags |= std::regex_constants::__polynomial;
#endif
  const std::regex expression(metric.expression, flags);
  std::optional<double> found;
  for (const Output& output : run.outputs) {
    if (!metric.stream.empty() && output.stream != metric.stream) continue;
    each_line(output, [&](std::string_view line) {
      std::match_results<std::string_view::const_iterator> match;
      if (!std::regex_search(line.begin(), line.end(), match, expression)) return;
      if (metric.group >= match.size()) return;
      if (const auto value = number(match[metric.group].str())) found = value;
    });
  }
  return found;
}

std::optional<double> from_counter(const Metric& metric, const RunRecord& run) {
  std::optional<double> found;
  for (const trace::Event& e : run.trace.events) {
    const double value = e.real("value", std::nan(""));
    if (e.ev == "counter" && e.str("name") == metric.pattern && std::isfinite(value)) found = value;
  }
  return found;
}

std::optional<double> from_json(const Metric& metric, const RunRecord& run) {
  std::optional<double> found;
  if (!metric.event.empty()) {
    for (const trace::Event& e : run.trace.events)
      if (e.ev == metric.event)
        if (const auto value = at_pointer(e.body.to_json(), metric.pointer)) found = value;
    return found;
  }
  for (const Output& output : run.outputs) {
    each_line(output, [&](std::string_view line) {
      if (line.empty() || line.front() != '{') return;
      const auto document = nlohmann::json::parse(line, nullptr, false);
      if (document.is_discarded()) return;
      if (const auto value = at_pointer(document, metric.pointer)) found = value;
    });
  }
  return found;
}

}  // namespace

NamedGroup strip_group_names(const std::string& pattern, const std::string& name) {
  NamedGroup out;
  std::size_t groups = 0;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out.expression += c;
      out.expression += pattern[++i];
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out.expression += c;
    if (c != '(' || in_class) continue;
    if (i + 1 >= pattern.size() || pattern[i + 1] != '?') {
      ++groups;
      continue;
    }
    std::size_t open = i + 2;
    if (open < pattern.size() && pattern[open] == 'P') ++open;
    const bool named = open + 1 < pattern.size() && pattern[open] == '<' &&
                       pattern[open + 1] != '=' && pattern[open + 1] != '!';
    const std::size_t close = named ? pattern.find('>', open) : std::string::npos;
    if (close == std::string::npos) continue;  // (?: (?= (?! are the library's business
    ++groups;
    if (pattern.compare(open + 1, close - open - 1, name) == 0) out.group = groups;
    i = close;
  }
  return out;
}

void apply_metrics(const std::vector<Metric>& metrics, RunRecord& run) {
  for (const Metric& metric : metrics) {
    std::optional<double> value;
    try {
      switch (metric.source) {
        case Metric::Source::kLog:
          value = from_log(metric, run);
          break;
        case Metric::Source::kCounter:
          value = from_counter(metric, run);
          break;
        case Metric::Source::kJson:
          value = from_json(metric, run);
          break;
      }
    } catch (const std::exception&) {
      // load_metrics() refused what can be known before; what is left is not observed.
    }
    run.figure_info[metric.name] = {metric.unit, metric.direction, metric.origin};
    if (value) run.figures[metric.name] = *value;
  }
}

}  // namespace warmgate::verdict
