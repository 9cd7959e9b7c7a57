// Two readings of a server's metrics under our names. What was not there is not observed; a figure
// is never made of a gap.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/target/server/prometheus.h"
#include "harness/trace/event.h"

namespace warmgate::target {
namespace {

using Series = std::map<std::map<std::string, std::string>, double>;

Series series_of(const Metrics& metrics, const std::string& name) {
  Series out;
  for (const MetricSample* each : metrics.find(name)) out[each->labels] = each->value;
  return out;
}

std::optional<double> sum(const Series& series) {
  if (series.empty()) return std::nullopt;
  double out = 0;
  for (const auto& [labels, value] : series) out += value;
  return out;
}

struct Growth {
  std::optional<double> before, after, value;
  std::string note;
};

// Series by series: a sum over labels would hide that one of them began anew.
Growth growth(const Metrics& before, const Metrics& after, const std::string& name) {
  const Series first = series_of(before, name), last = series_of(after, name);
  Growth out{sum(first), sum(last), std::nullopt, ""};
  if (last.empty()) {
    out.note = first.empty() ? "not exposed" : "no longer exposed in the second reading";
    return out;
  }
  double total = 0;
  bool late = false;
  for (const auto& [labels, value] : last) {
    const auto it = first.find(labels);
    const double base = it == first.end() ? 0 : it->second;
    late = late || it == first.end();
    if (!std::isfinite(value) || !std::isfinite(base)) {
      out.note = "not a finite number";
      return out;
    }
    if (value < base) {
      out.note = fmt::format("the counter was reset: {:g}, then {:g}", base, value);
      return out;
    }
    total += value - base;
  }
  for (const auto& [labels, value] : first) {
    if (last.count(labels) != 0) continue;
    out.note = "a part of it is no longer exposed in the second reading";
    return out;
  }
  out.value = total;
  // Some servers expose a counter only once it counts; what it holds then came in between.
  if (late) out.note = "appeared after the first reading; counted from its appearance";
  return out;
}

void counter(MetricDelta& out, const Metrics& before, const Metrics& after) {
  Growth g = growth(before, after, out.metric);
  out.before = g.before;
  out.after = g.after;
  out.value = g.value;
  out.note = std::move(g.note);
}

void histogram(MetricDelta& out, const Metrics& before, const Metrics& after) {
  const Growth total = growth(before, after, out.metric + "_sum");
  const Growth count = growth(before, after, out.metric + "_count");
  const auto mean = [](const Growth& s, const Growth& c, auto member) -> std::optional<double> {
    if (!(s.*member) || !(c.*member) || *(c.*member) <= 0) return std::nullopt;
    return *(s.*member) / *(c.*member);
  };
  out.before = mean(total, count, &Growth::before);
  out.after = mean(total, count, &Growth::after);
  out.value = mean(total, count, &Growth::value);
  out.note = !count.note.empty() ? count.note : total.note;
  if (!out.value && out.note.empty()) out.note = "nothing was added in between";
}

void gauge(MetricDelta& out, const std::optional<Metrics>& before, const Metrics& after) {
  if (before) out.before = sum(series_of(*before, out.metric));
  out.after = out.value = sum(series_of(after, out.metric));
  if (out.value && !std::isfinite(*out.value)) {
    out.value.reset();
    out.note = "not a finite number";
  }
}

std::optional<double> label_value(const Metrics& metrics, const std::string& metric,
                                  const std::string& label) {
  for (const MetricSample* each : metrics.find(metric)) {
    const auto it = each->labels.find(label);
    if (it == each->labels.end()) continue;
    char* end = nullptr;
    const double value = std::strtod(it->second.c_str(), &end);
    if (end != it->second.c_str() && *end == '\0' && std::isfinite(value)) return value;
  }
  return std::nullopt;
}

bool exposed(const std::optional<Metrics>& metrics, const MetricName& name) {
  if (!metrics) return false;
  const bool plain = !metrics->find(name.theirs).empty();
  return name.kind == "histogram" ? !metrics->find(name.theirs + "_count").empty() : plain;
}

void rescale(MetricDelta& out) {
  if (!out.metric.ends_with("_seconds") || !out.figure.ends_with("_ms")) return;
  for (auto* each : {&out.before, &out.after, &out.value}) {
    if (*each) **each *= 1000;
  }
}

MetricDelta compare(const std::optional<Metrics>& before, const std::optional<Metrics>& after,
                    const MetricName& name, const std::string& label) {
  MetricDelta out;
  out.figure = name.ours;
  out.metric = name.theirs;
  out.kind = name.kind;
  if (!after) {
    out.note = "metrics could not be read after the work";
  } else if (name.kind == "gauge") {
    gauge(out, before, *after);
  } else if (name.kind == "label") {
    out.after = out.value = label_value(*after, name.theirs, label);
    if (before) out.before = label_value(*before, name.theirs, label);
  } else if (!before) {
    out.note = "metrics could not be read before the work";
  } else if (name.kind == "histogram") {
    histogram(out, *before, *after);
  } else {
    counter(out, *before, *after);
  }
  if (!out.value && out.note.empty()) out.note = "not exposed";
  rescale(out);
  return out;
}

}  // namespace

std::vector<MetricDelta> compare_metrics(const std::optional<Metrics>& before,
                                         const std::optional<Metrics>& after,
                                         const std::vector<MetricName>& names) {
  std::vector<MetricDelta> out;
  for (const MetricName& name : names) {
    const auto done = std::find_if(out.begin(), out.end(),
                                   [&](const MetricDelta& d) { return d.figure == name.ours; });
    MetricDelta delta = compare(before, after, name, name.label);
    if (done == out.end()) {
      out.push_back(std::move(delta));
    } else if (!done->value && (exposed(before, name) || exposed(after, name))) {
      // The name of another version.
      *done = std::move(delta);
    }
  }
  return out;
}

std::vector<trace::Event> metric_events(const std::vector<MetricDelta>& deltas, std::int64_t t_ns) {
  std::vector<trace::Event> out;
  for (const MetricDelta& each : deltas) {
    if (!each.value) continue;
    trace::Event event;
    event.ev = "counter";
    event.t_ns = t_ns;
    event.src = "http";
    event.source = "http";
    event.body.add("name", std::string_view(each.figure));
    event.body.add("value", *each.value);
    event.body.add("metric", std::string_view(each.metric));
    if (each.before) event.body.add("before", *each.before);
    if (each.after) event.body.add("after", *each.after);
    if (each.kind == "counter") event.body.add("delta", *each.value);
    if (!each.note.empty()) event.body.add("note", std::string_view(each.note));
    out.push_back(std::move(event));
  }
  return out;
}

}  // namespace warmgate::target
