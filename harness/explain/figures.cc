#include "harness/explain/figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/explain/text.h"

namespace warmgate::explain::internal {

using nlohmann::json;

namespace {

constexpr std::size_t kMostListed = 1024;

// 3.64 + 13.90 is 17.54 on paper.
json rounded(double value, bool whole) {
  if (whole && std::abs(value) < 9e15) return static_cast<std::int64_t>(std::llround(value));
  return std::round(value * 1e6) / 1e6;
}

bool number(const std::string& text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

json printed_value(std::string_view text) {
  std::string plain;
  for (const char c : text.substr(0, 40)) {
    if (c != ',') plain += c;
  }
  while (!plain.empty() && plain.back() == '.') plain.pop_back();
  if (!plain.empty() && text.size() <= 40) {
    std::int64_t whole = 0;
    const char* end = plain.data() + plain.size();
    if (const auto [at, error] = std::from_chars(plain.data(), end, whole);
        error == std::errc() && at == end) {
      return whole;
    }
    double value = 0;
    if (const auto [at, error] = std::from_chars(plain.data(), end, value);
        error == std::errc() && at == end && std::isfinite(value)) {
      return value;
    }
  }
  return shown(text, 200);
}

void FigureStore::reset(int figure) { cells_.erase(figure); }

void FigureStore::take(const Grammar& grammar, int figure, int worker, int span,
                       const json& given) {
  const FigureRule& rule = grammar.figures[static_cast<std::size_t>(figure)];
  Cell& cell = cells_[figure][worker];
  if (rule.per_span && span >= 0 && cell.span >= 0 && span != cell.span) cell = Cell{};
  cell.span = span;
  cell.order = ++order_;
  json value = given;
  if (rule.fold == Fold::kItems) {
    const std::string text = given.is_string() ? given.get<std::string>() : given.dump();
    const auto items = std::count(text.begin(), text.end(), ',') + 1;
    value = text.empty() ? 0 : items;
  }
  ++cell.count;
  if (value.is_number()) {
    cell.sum += value.get<double>();
    cell.whole = cell.whole && value.is_number_integer();
    if (cell.low.is_null() || value < cell.low) cell.low = value;
    if (cell.high.is_null() || value > cell.high) cell.high = value;
  }
  if (cell.count == 1) cell.first = value;
  if (cell.count == rule.nth) cell.nth = value;
  cell.last = std::move(value);
}

json FigureStore::folded(const FigureRule& rule, const Cell& cell) const {
  switch (rule.fold) {
    case Fold::kFirst:
      return cell.first;
    case Fold::kSum:
      return cell.last.is_number() ? rounded(cell.sum, cell.whole) : cell.last;
    case Fold::kMax:
      return cell.high;
    case Fold::kMin:
      return cell.low;
    case Fold::kNth:
      return cell.nth;
    case Fold::kCount:
      return cell.count;
    case Fold::kLast:
    case Fold::kItems:
      break;
  }
  return cell.last;
}

json FigureStore::over_ranks(const FigureRule& rule, const std::map<int, Cell>& cells,
                             const Workers& workers) const {
  json best;
  double sum = 0;
  bool whole = true, numbers = true;
  std::uint64_t order = 0;
  for (const auto& [worker, cell] : cells) {
    const json value = folded(rule, cell);
    if (value.is_null()) continue;
    numbers = numbers && value.is_number();
    if (value.is_number()) {
      sum += value.get<double>();
      whole = whole && value.is_number_integer();
    }
    const bool later = cell.order > order;
    order = std::max(order, cell.order);
    bool takes = best.is_null();
    if (!numbers || rule.ranks == Ranks::kLast) takes = takes || later;
    if (numbers && rule.ranks == Ranks::kMax) takes = takes || value > best;
    if (numbers && rule.ranks == Ranks::kMin) takes = takes || value < best;
    if (takes) best = value;
  }
  if (rule.ranks == Ranks::kSum && numbers && !best.is_null()) return rounded(sum, whole);
  if (rule.ranks == Ranks::kList && !best.is_null()) {
    std::vector<std::pair<int, json>> listed;
    for (const auto& [worker, cell] : cells) {
      const json value = folded(rule, cell);
      if (!value.is_null() && listed.size() < kMostListed) {
        listed.emplace_back(workers.rank(worker).value_or(1 << 30), value);
      }
    }
    std::stable_sort(listed.begin(), listed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    json out = json::array();
    for (auto& [rank, value] : listed) out.push_back(std::move(value));
    return out;
  }
  return best;
}

std::map<std::string, json> FigureStore::result(
    const Grammar& grammar, const Workers& workers,
    const std::vector<const Timeline*>& timelines) const {
  std::map<std::string, json> out;
  for (const auto& [figure, cells] : cells_) {
    const FigureRule& rule = grammar.figures[static_cast<std::size_t>(figure)];
    json value = over_ranks(rule, cells, workers);
    if (!value.is_null()) out[rule.name] = std::move(value);
    if (!rule.list_as.empty() && cells.size() > 1) {
      FigureRule list = rule;
      list.ranks = Ranks::kList;
      out[rule.list_as] = over_ranks(list, cells, workers);
    }
  }
  const auto factor = [&](const std::vector<std::string>& alternatives, double& value) {
    for (const std::string& alternative : alternatives) {
      if (number(alternative, value)) return true;
      const auto it = out.find(alternative);
      if (it == out.end() || !it->second.is_number()) continue;
      value = it->second.get<double>();
      return true;
    }
    return false;
  };
  for (const Derived& derived : grammar.derived) {
    if (out.count(derived.name) > 0) continue;
    if (!derived.spans_of.empty()) {
      int passes = 0;
      for (const Timeline* timeline : timelines) {
        passes = std::max(passes, timeline->count(derived.spans_of));
      }
      if (passes < derived.at_least) continue;
      if (derived.first_pass.empty()) {
        out[derived.name] = passes;
      } else if (const auto it = cells_.find(grammar.figure(derived.first_pass));
                 it != cells_.end()) {
        FigureRule rule = grammar.figures[static_cast<std::size_t>(it->first)];
        rule.fold = Fold::kFirst;
        out[derived.name] = over_ranks(rule, it->second, workers);
      }
      continue;
    }
    if (!derived.seconds_of.empty()) {
      double longest = 0;
      for (const Timeline* timeline : timelines) {
        double seconds = 0;
        for (const Span& span : timeline->spans()) {
          if (span.phase != derived.seconds_of || !span.entered) continue;
          const double one = seconds_between(span.first_timed, span.last_timed);
          if (has_time(one) && one > 0) seconds += one;
        }
        longest = std::max(longest, seconds);
      }
      if (longest > 0) out[derived.name] = rounded(longest, false);
      continue;
    }
    double product = 1, one = 0;
    bool known = !derived.times.empty() || !derived.over.empty();
    for (const auto& alternatives : derived.times) {
      known = known && factor(alternatives, one);
      product *= one;
    }
    for (const auto& alternatives : derived.over) {
      known = known && factor(alternatives, one) && one != 0;
      if (known) product /= one;
    }
    if (known && std::isfinite(product)) out[derived.name] = rounded(product, derived.whole);
  }
  return out;
}

}  // namespace warmgate::explain::internal
