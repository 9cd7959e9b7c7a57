#include "harness/explain/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "harness/explain/grammar.h"

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

// Whether `order`, which lacks `phase`, shows one that comes after it: in the other log, or, where
// that has neither, by the order that phases have in every engine.
bool is_past(const std::vector<std::string>& order, const std::vector<std::string>& other,
             const std::string& phase) {
  const auto place = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) - list.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(other.size());
  const std::vector<std::string>& all = internal::phase_names();
  return std::any_of(order.begin(), order.end(), [&](const std::string& shown) {
    const std::ptrdiff_t at = place(other, shown);
    return at < end ? at > place(other, phase) : place(all, shown) > place(all, phase);
  });
}

// Of a log that begins in the middle, the phases before that are no difference.
std::vector<std::string> from_where(const std::vector<std::string>& order,
                                    const std::vector<std::string>& later) {
  const auto first =
      later.empty() ? order.end() : std::find(order.begin(), order.end(), later.front());
  return first == order.end() ? order : std::vector<std::string>(first, order.end());
}

std::string end_of(const Reading& reading) {
  if (reading.outcome == "passed") return "reaches ready";
  return fmt::format(
      "{} in {}", reading.outcome == "incomplete" ? "ends" : reading.outcome,
      reading.failing_phase.value_or(reading.last_phase.empty() ? "no phase" : reading.last_phase));
}

std::string divergence_of(const Reading& a, const Reading& b, std::string& begins) {
  const std::vector<std::string> all_a = phase_order(a), all_b = phase_order(b);
  std::vector<std::string> in_a = from_where(all_a, all_b);
  std::vector<std::string> in_b = all_b;
  if (in_a.size() == all_a.size()) in_b = from_where(all_b, all_a);
  const bool cut_a = in_b.size() < all_b.size(), cut_b = in_a.size() < all_a.size();
  if (cut_a || cut_b)
    begins = fmt::format("{}'s log begins in {}", cut_a ? "A" : "B", in_a.front());
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
  // What the first phase of such a log lacks may stand before its first line.
  const auto unseen = [&](bool cut, const std::string& phase) {
    return cut && phase == in_a.front();
  };
  for (const auto& [name, phase] : of_a) {
    if (shared.count(phase) > 0 && lacks(of_b, name) && !unseen(cut_b, phase))
      return fmt::format("in {}: A has {}, B has not", phase, name);
  }
  for (const auto& [name, phase] : of_b) {
    if (shared.count(phase) > 0 && lacks(of_a, name) && !unseen(cut_a, phase))
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
  out.divergence = divergence_of(a, b, out.begins);

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
    PhaseDifference one;
    one.phase = phase;
    one.times_a = times(a);
    one.times_b = times(b);
    one.passed_a = one.times_a == 0 && is_past(phase_order(a), phase_order(b), phase);
    one.passed_b = one.times_b == 0 && is_past(phase_order(b), phase_order(a), phase);
    one.seconds_a = seconds_in(a, phase);
    one.seconds_b = seconds_in(b, phase);
    out.phases.push_back(std::move(one));
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
  out["begins"] = nullptr;
  if (!comparison.begins.empty()) out["begins"] = comparison.begins;
  out["same_engine"] = comparison.same_engine;
  out["same_version"] = comparison.same_version;
  out["phases"] = nlohmann::ordered_json::array();
  const auto seconds = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  for (const PhaseDifference& phase : comparison.phases) {
    out["phases"].push_back(
        {{"phase", phase.phase},
         {"times", {phase.times_a, phase.times_b}},
         {"passed", {phase.times_a > 0 || phase.passed_a, phase.times_b > 0 || phase.passed_b}},
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
