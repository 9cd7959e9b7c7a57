// What a server says about itself in numbers: Prometheus text or JSON, before and after the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/target/server/preset.h"
#include "harness/trace/event.h"

namespace warmgate::target {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;  // unescaped
  double value = 0;                           // may be NaN or infinite
};

/// One reading of all metrics.
struct Metrics {
  static constexpr std::size_t kMaxSamples = 100000;
  static constexpr std::size_t kMaxGarbage = 20;  // lines that are kept; all are counted

  std::vector<MetricSample> samples;         // of equal name and labels the first
  std::map<std::string, std::string> types;  // family → counter, gauge, histogram …
  std::vector<std::string> garbage;          // what is no line of the format, ≤ 200 bytes each
  std::size_t garbage_lines = 0;
  std::size_t duplicates = 0;  // lines that repeat a name with the same labels
  bool cut = false;            // more than kMaxSamples
  std::int64_t t_ns = 0;

  /// All of this name, in order.
  std::vector<const MetricSample*> find(std::string_view name) const;
};

/// Prometheus text format 0.0.4 and OpenMetrics (exemplars and time stamps are read over). Garbage
/// is kept and counted, never a reason to read nothing.
Metrics parse_prometheus(std::string_view text);

/// A JSON object, or a list of statistics, one an iteration, of which a reading takes away what it
/// gives (TensorRT-LLM's /metrics). Names are JSON pointers: of the object, or of the last element;
/// below "/sum" the sums over all elements; "/iterations" is their count. A text that is no JSON is
/// garbage.
Metrics parse_metrics_json(std::string_view text);

/// `kind` of MetricsEndpoint: prometheus | json.
Metrics parse_metrics(std::string_view kind, std::string_view text);

/// One reading of two endpoints: a figure that the first does not expose may stand in the second.
std::optional<Metrics> both(std::optional<Metrics> first, std::optional<Metrics> second);

/// What became of one figure between two readings.
struct MetricDelta {
  std::string figure, metric;  // ours; theirs, the first name that was there
  std::string kind;            // counter | gauge | histogram | label
  std::optional<double> before, after;
  std::optional<double> value;  // counter: the difference; gauge and label: after; histogram: mean
                                // of what was added. Absent = not observed, never 0
  std::string note;  // why it is absent, or what to know: a counter that was reset, one that
                     // appeared only after the first reading
};

/// One entry for each figure that `names` maps, in their order. A name that ends in _seconds is
/// multiplied by 1000 for a figure that ends in _ms. Without a reading (the endpoint did
/// not answer) everything is not observed. Of several `theirs` for one figure the first that is
/// there counts; samples of one name with several labels are summed (histograms: sums and counts).
std::vector<MetricDelta> compare_metrics(const std::optional<Metrics>& before,
                                         const std::optional<Metrics>& after,
                                         const std::vector<MetricName>& names);

/// `counter` events {name, value, before, after, delta, metric, note} of what was observed, src
/// http.
std::vector<trace::Event> metric_events(const std::vector<MetricDelta>& deltas, std::int64_t t_ns);

}  // namespace warmgate::target
