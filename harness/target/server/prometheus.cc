#include "harness/target/server/prometheus.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

bool name_begin(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}
bool name_char(char c) { return name_begin(c) || (c >= '0' && c <= '9'); }
bool blank(char c) { return c == ' ' || c == '\t'; }

std::optional<double> number(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  // Too large for a double is what Go writes as +Inf; too small is 0.
  if (ec == std::errc::result_out_of_range)
    return text.find("e-") != std::string_view::npos ? 0.0 : HUGE_VAL;
  return ec == std::errc() ? std::optional(value) : std::nullopt;
}

// A cursor over one line. Every take…() leaves the cursor behind what it took.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  void skip_blanks() {
    while (!rest_.empty() && blank(rest_[0])) rest_.remove_prefix(1);
  }
  bool at_end() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string take_name() {
    std::size_t n = 0;
    while (n < rest_.size() && (n == 0 ? name_begin(rest_[n]) : name_char(rest_[n]))) ++n;
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  std::string_view take_word() {
    std::size_t n = 0;
    while (n < rest_.size() && !blank(rest_[n])) ++n;
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  // After the opening quote.
  bool take_quoted(std::string& out) {
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (rest_[i] != '\\') {
        out += rest_[i];
        continue;
      }
      if (++i == rest_.size()) return false;
      if (rest_[i] == 'n') {
        out += '\n';
      } else if (rest_[i] == '\\' || rest_[i] == '"') {
        out += rest_[i];
      } else {
        (out += '\\') += rest_[i];  // the format leaves this open; keep what was there
      }
    }
    return false;
  }
  bool take_labels(MetricSample& sample) {
    for (;;) {
      skip_blanks();
      if (take('}')) return true;
      std::string label, value;
      if (take('"')) {
        if (!take_quoted(label)) return false;
        skip_blanks();
        // Names beyond the old alphabet stand in quotes inside the braces.
        if (rest_.empty() || rest_[0] != '=') {
          if (!sample.name.empty()) return false;
          sample.name = label;
          if (!take(',') && (rest_.empty() || rest_[0] != '}')) return false;
          continue;
        }
      } else {
        label = take_name();
        skip_blanks();
      }
      if (label.empty() || !take('=')) return false;
      skip_blanks();
      if (!take('"') || !take_quoted(value)) return false;
      sample.labels[label] = value;
      skip_blanks();
      if (!take(',') && (rest_.empty() || rest_[0] != '}')) return false;
    }
  }

 private:
  std::string_view rest_;
};

// False if it is no line of the format.
bool parse_sample(std::string_view text, MetricSample& sample) {
  Line line(text);
  line.skip_blanks();
  sample.name = line.take_name();
  line.skip_blanks();
  if (line.take('{') && !line.take_labels(sample)) return false;
  if (sample.name.empty()) return false;
  line.skip_blanks();
  const auto value = number(line.take_word());
  if (!value) return false;
  sample.value = *value;
  line.skip_blanks();
  if (line.at_end() || line.take('#')) return true;  // an exemplar
  if (!number(line.take_word())) return false;       // a time stamp
  line.skip_blanks();
  return line.at_end() || line.take('#');
}

void garbage(Metrics& out, std::string_view line) {
  ++out.garbage_lines;
  if (out.garbage.size() < Metrics::kMaxGarbage) out.garbage.emplace_back(line.substr(0, 200));
}

std::string identity(const MetricSample& sample) {
  std::string out = sample.name;
  for (const auto& [label, value] : sample.labels) {
    out += '\0';
    out += label;
    out += '\0';
    out += value;
  }
  return out;
}

void add(Metrics& out, std::unordered_set<std::string>& seen, MetricSample sample) {
  if (out.samples.size() >= Metrics::kMaxSamples) {
    out.cut = true;
  } else if (!seen.insert(identity(sample)).second) {
    ++out.duplicates;
  } else {
    out.samples.push_back(std::move(sample));
  }
}

void flatten(const nlohmann::json& value, const std::string& at, std::map<std::string, double>& out,
             int depth = 0) {
  if (depth > 16 || out.size() >= Metrics::kMaxSamples) return;
  if (value.is_number()) out[at] = value.get<double>();
  if (value.is_boolean()) out[at] = value.get<bool>() ? 1 : 0;
  if (value.is_object()) {
    for (const auto& [key, each] : value.items()) flatten(each, at + "/" + key, out, depth + 1);
  }
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      flatten(value[i], at + "/" + std::to_string(i), out, depth + 1);
  }
}

}  // namespace

std::vector<const MetricSample*> Metrics::find(std::string_view name) const {
  std::vector<const MetricSample*> out;
  for (const MetricSample& each : samples) {
    if (each.name == name) out.push_back(&each);
  }
  return out;
}

Metrics parse_prometheus(std::string_view text) {
  Metrics out;
  out.t_ns = trace::now_ns();
  std::unordered_set<std::string> seen;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    while (!line.empty() && blank(line[0])) line.remove_prefix(1);
    if (line.empty()) continue;
    if (line[0] == '#') {
      Line words(line.substr(1));
      words.skip_blanks();
      if (words.take_word() != "TYPE") continue;
      words.skip_blanks();
      const std::string family(words.take_word());
      words.skip_blanks();
      if (out.types.size() < Metrics::kMaxSamples) out.types[family] = words.take_word();
      continue;
    }
    MetricSample sample;
    if (parse_sample(line, sample)) {
      add(out, seen, std::move(sample));
    } else {
      garbage(out, line);
    }
  }
  return out;
}

Metrics parse_metrics_json(std::string_view text) {
  Metrics out;
  out.t_ns = trace::now_ns();
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() && !document.is_array()) {
    garbage(out, text);
    return out;
  }
  std::map<std::string, double> values, sums;
  if (document.is_object()) {
    flatten(document, "", values);
  } else {
    if (!document.empty()) flatten(document.back(), "", values);
    for (const auto& each : document) {
      std::map<std::string, double> one;
      flatten(each, "/sum", one);
      for (const auto& [name, value] : one) sums[name] += value;
    }
    values.merge(sums);
    values["/iterations"] = static_cast<double>(document.size());
  }
  for (const auto& [name, value] : values) {
    if (out.samples.size() >= Metrics::kMaxSamples) out.cut = true;
    if (!out.cut) out.samples.push_back({name, {}, value});
  }
  return out;
}

std::optional<Metrics> both(std::optional<Metrics> first, std::optional<Metrics> second) {
  if (!first || !second) return first ? std::move(first) : std::move(second);
  for (MetricSample& each : second->samples) first->samples.push_back(std::move(each));
  first->types.merge(second->types);
  first->garbage_lines += second->garbage_lines;
  first->duplicates += second->duplicates;
  first->cut = first->cut || second->cut;
  return first;
}

Metrics parse_metrics(std::string_view kind, std::string_view text) {
  return kind == "json" ? parse_metrics_json(text) : parse_prometheus(text);
}

}  // namespace warmgate::target
