#include "harness/explain/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace warmgate::explain {
namespace {

// Phases as they follow each other in the first source that has most of them; ranks walk together.
std::vector<std::string> phase_order(const Reading& reading) {
  std::map<int, std::vector<std::string>> by_source;
  for (const PhaseSpan& span : reading.phases) {
    std::vector<std::string>& order = by_source[span.source];
    if (order.empty() || order.back() != span.phase) order.push_back(span.phase);
  }
  std::vector<std::string> best;
  for (const auto& [source, order] : by_source)
    if (order.size() > best.size()) best = order;
  return best;
}

// The slowest source counts; within one the stretches add up.
std::optional<double> seconds_in(const Reading& reading, const std::string& phase) {
  std::map<int, double> by_source;
  for (const PhaseSpan& span : reading.phases) {
    if (span.phase == phase && span.begin_s && span.end_s && *span.end_s >= *span.begin_s)
      by_source[span.source] += *span.end_s - *span.begin_s;
  }
  std::optional<double> out;
  for (const auto& [source, seconds] : by_source) out = std::max(out.value_or(0), seconds);
  return out;
}

// Names of milestones, each where it first occurs.
std::vector<std::pair<std::string, std::string>> milestones(const Reading& reading) {
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> seen;
  for (const Moment& moment : reading.moments) {
    if (moment.sort == "progress" && seen.insert(moment.name).second)
      out.emplace_back(moment.name, moment.phase);
  }
  return out;
}

std::string end_of(const Reading& reading) {
  if (reading.outcome == "passed") return "reaches ready";
  return fmt::format(
      "{} in {}", reading.outcome == "incomplete" ? "ends" : reading.outcome,
      reading.failing_phase.value_or(reading.last_phase.empty() ? "no phase" : reading.last_phase));
}

std::string divergence_of(const Reading& a, const Reading& b) {
  const std::vector<std::string> in_a = phase_order(a), in_b = phase_order(b);
  std::size_t same = 0;
  while (same < in_a.size() && same < in_b.size() && in_a[same] == in_b[same]) ++same;
  const std::string after = same == 0 ? "from the beginning" : "after " + in_a[same - 1];
  const auto next = [&](const std::vector<std::string>& order, const Reading& reading) {
    return same < order.size() ? "goes on to " + order[same] : end_of(reading);
  };
  // A milestone that only one of them passes, in the phases that they share, comes before that.
  std::set<std::string> shared(in_a.begin(), in_a.begin() + static_cast<std::ptrdiff_t>(same));
  const auto of_a = milestones(a), of_b = milestones(b);
  const auto lacks = [](const auto& list, const std::string& name) {
    return std::none_of(list.begin(), list.end(),
                        [&](const auto& item) { return item.first == name; });
  };
  for (const auto& [name, phase] : of_a) {
    if (shared.count(phase) > 0 && lacks(of_b, name))
      return fmt::format("in {}: A has {}, B has not", phase, name);
  }
  for (const auto& [name, phase] : of_b) {
    if (shared.count(phase) > 0 && lacks(of_a, name))
      return fmt::format("in {}: B has {}, A has not", phase, name);
  }
  if (same < in_a.size() || same < in_b.size())
    return fmt::format("{}: A {}, B {}", after, next(in_a, a), next(in_b, b));
  if (a.outcome != b.outcome) return fmt::format("{}: A {}, B {}", after, end_of(a), end_of(b));
  return "";
}

std::optional<double> number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  return std::nullopt;
}

}  // namespace

std::string without_numbers(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool hex = c == '0' && i + 2 < text.size() && text[i + 1] == 'x' &&
                     std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0;
    if (hex) {
      i += 2;
      while (i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
      out += "<n>";
    } else if (std::isdigit(c) != 0) {
      while (i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) != 0 ||
                                 ((text[i] == '.' || text[i] == ',') && i + 1 < text.size() &&
                                  std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0)))
        ++i;
      out += "<n>";
    } else {
      out += text[i++];
    }
  }
  return out;
}

Comparison compare(const Reading& a, const Reading& b) {
  Comparison out;
  out.same_engine = a.engine == b.engine;
  out.same_version = a.version == b.version;
  out.divergence = divergence_of(a, b);

  std::vector<std::string> phases = phase_order(a);
  const std::vector<std::string> more = phase_order(b);
  phases.insert(phases.end(), more.begin(), more.end());
  std::set<std::string> seen;
  for (const std::string& phase : phases) {
    if (!seen.insert(phase).second) continue;
    const auto times = [&](const Reading& reading) {
      const auto order = phase_order(reading);
      return static_cast<int>(std::count(order.begin(), order.end(), phase));
    };
    out.phases.push_back({phase, times(a), times(b), seconds_in(a, phase), seconds_in(b, phase)});
  }

  std::set<std::string> names;
  for (const auto& [name, value] : a.figures) names.insert(name);
  for (const auto& [name, value] : b.figures) names.insert(name);
  for (const std::string& name : names) {
    const auto of = [&](const Reading& reading) {
      const auto it = reading.figures.find(name);
      return it == reading.figures.end() ? nlohmann::json() : it->second;
    };
    FigureDifference difference{name, of(a), of(b), std::nullopt};
    if (difference.a == difference.b) continue;
    const auto before = number(difference.a), after = number(difference.b);
    if (before && after && *before != 0)
      difference.per_cent = (*after - *before) / std::abs(*before) * 100;
    out.figures.push_back(std::move(difference));
  }

  const auto only = [&](const Reading& here, const Reading& there, char side) {
    std::set<std::string> known;
    for (const Moment& moment : there.moments)
      known.insert(moment.sort + "\n" + without_numbers(moment.text));
    for (const Moment& moment : here.moments) {
      if (moment.sort == "progress" || moment.sort == "echo" || moment.sort == "victim") continue;
      if (known.insert(moment.sort + "\n" + without_numbers(moment.text)).second)
        out.only.push_back({side, moment.sort, moment.text, moment.line});
    }
  };
  only(b, a, 'b');
  only(a, b, 'a');
  return out;
}

nlohmann::ordered_json to_json(const Comparison& comparison) {
  nlohmann::ordered_json out;
  out["divergence"] = nullptr;
  if (!comparison.divergence.empty()) out["divergence"] = comparison.divergence;
  out["same_engine"] = comparison.same_engine;
  out["same_version"] = comparison.same_version;
  out["phases"] = nlohmann::ordered_json::array();
  const auto seconds = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  for (const PhaseDifference& phase : comparison.phases) {
    out["phases"].push_back({{"phase", phase.phase},
                             {"times", {phase.times_a, phase.times_b}},
                             {"seconds", {seconds(phase.seconds_a), seconds(phase.seconds_b)}}});
  }
  out["figures"] = nlohmann::ordered_json::array();
  for (const FigureDifference& figure : comparison.figures) {
    out["figures"].push_back({{"name", figure.name},
                              {"a", figure.a},
                              {"b", figure.b},
                              {"per_cent", seconds(figure.per_cent)}});
  }
  out["only"] = nlohmann::ordered_json::array();
  for (const OnlyIn& only : comparison.only) {
    out["only"].push_back({{"side", std::string(1, only.side)},
                           {"sort", only.sort},
                           {"line", only.line},
                           {"text", only.text}});
  }
  return out;
}

}  // namespace warmgate::explain
