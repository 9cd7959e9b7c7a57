#include "harness/scenario/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

namespace warmgate::scenario {

std::string Problem::text() const {
  std::string out = file;
  if (line > 0) out += fmt::format(":{}:{}", line, column);
  out += ": ";
  if (!key_path.empty()) out += key_path + ": ";
  return out + message;
}

namespace {

std::string all_texts(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& problem : problems) out += (out.empty() ? "" : "\n") + problem.text();
  return out;
}

// Names that differ only in case or in - against _ are as good as equal.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Optimal string alignment distance: insert, delete, replace, swap neighbours.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

ScenarioError::ScenarioError(std::vector<Problem> problems)
    : std::runtime_error(all_texts(problems)), problems_(std::move(problems)) {}

void Problems::add(const Place& place, std::string key_path, std::string message) {
  ++told_;
  if (problems_.size() >= kMost) return;
  Problem problem;
  problem.file = place.file ? *place.file : "";
  problem.line = place.line;
  problem.column = place.column;
  problem.key_path = std::move(key_path);
  problem.message = std::move(message);
  for (const Problem& known : problems_) {
    if (known.text() == problem.text()) return;
  }
  problems_.push_back(std::move(problem));
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  auto sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.file, a.line, a.column) < std::tie(b.file, b.line, b.column);
  });
  throw ScenarioError(std::move(sorted));
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > 80) return std::nullopt;
  const std::string wanted = folded(name);
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(wanted, folded(candidate));
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  if (best) return best;
  // A part of a longer name: "max_len" for "max_model_len" is further than any typo.
  for (const std::string& candidate : candidates) {
    if (wanted.size() >= 4 && folded(candidate).find(wanted) != std::string::npos) return candidate;
  }
  return std::nullopt;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto best = nearest(name, candidates);
  return best ? "; did you mean " + *best + "?" : "";
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out = "'";
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  // Do not cut a UTF-8 sequence in two.
  if (text.size() > kMost) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && (static_cast<unsigned char>(out.back()) & 0x80) != 0) out.pop_back();
    out += "…";
  }
  return out + "'";
}

}  // namespace warmgate::scenario
