#include "harness/explain/reading.h"

namespace warmgate::explain {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}
ordered_json word_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json moment_json(const Moment& moment) {
  ordered_json out = {{"sort", moment.sort},
                      {"name", moment.name},
                      {"source", moment.source},
                      {"line", moment.line},
                      {"worker", word_or_null(moment.worker)},
                      {"rank", or_null(moment.rank)},
                      {"phase", word_or_null(moment.phase)}};
  if (moment.at_s) out["at_s"] = *moment.at_s;
  out["text"] = moment.text;
  return out;
}

}  // namespace

ordered_json to_json(const Reading& reading) {
  ordered_json out;
  out["schema"] = "explain/1.0";
  out["engine"] = word_or_null(reading.engine);
  out["version"] = or_null(reading.version);
  out["outcome"] = reading.outcome;
  out["last_phase"] = word_or_null(reading.last_phase);
  out["failing_phase"] = or_null(reading.failing_phase);
  out["failing_worker"] = or_null(reading.failing_worker);
  out["failing_rank"] = or_null(reading.failing_rank);
  out["fingerprint"] = nullptr;
  if (reading.fingerprint) {
    out["fingerprint"] = {{"type", reading.fingerprint->type},
                          {"function", reading.fingerprint->function},
                          {"file", reading.fingerprint->file}};
  }
  out["figures"] = ordered_json::object();
  for (const auto& [name, value] : reading.figures) out["figures"][name] = value;
  if (reading.failing_workers.size() > 1) out["failing_workers"] = reading.failing_workers;
  if (!reading.message.empty()) out["message"] = reading.message;
  if (!reading.frames.empty()) {
    out["frames"] = ordered_json::array();
    for (const Fingerprint& frame : reading.frames) {
      out["frames"].push_back({{"function", frame.function}, {"file", frame.file}});
    }
  }
  if (reading.silence) {
    const Silence& silence = *reading.silence;
    out["silence"] = {{"seconds", silence.seconds},         {"source", silence.source},
                      {"since_line", silence.since_line},   {"last_text", silence.last_text},
                      {"last_worker", silence.last_worker}, {"missing", silence.missing}};
  }
  out["phases"] = ordered_json::array();
  for (const PhaseSpan& span : reading.phases) {
    ordered_json one = {{"phase", span.phase},
                        {"source", span.source},
                        {"first_line", span.first_line},
                        {"last_line", span.last_line}};
    if (span.begin_s) one["begin_s"] = *span.begin_s;
    if (span.end_s) one["end_s"] = *span.end_s;
    out["phases"].push_back(std::move(one));
  }
  out["moments"] = ordered_json::array();
  for (const Moment& moment : reading.moments) out["moments"].push_back(moment_json(moment));
  out["moment_counts"] = reading.moment_counts;
  out["workers"] = reading.workers;
  out["sources"] = reading.sources;
  out["source_engines"] = ordered_json::array();
  for (const std::string& engine : reading.source_engines)
    out["source_engines"].push_back(word_or_null(engine));
  out["lines"] = {{"all", reading.lines},       {"placed", reading.placed},
                  {"serving", reading.serving}, {"unplaced", reading.unplaced},
                  {"blank", reading.blank},     {"bytes", reading.bytes}};
  out["unplaced"] = ordered_json::array();
  for (const UnplacedLine& line : reading.unplaced_lines) {
    out["unplaced"].push_back({{"source", line.source}, {"line", line.line}, {"text", line.text}});
  }
  return out;
}

}  // namespace warmgate::explain
