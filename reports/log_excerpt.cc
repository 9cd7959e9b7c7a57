#include "reports/log_excerpt.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/ansi.h"
#include "reports/text.h"

namespace warmgate::reports {
namespace {

constexpr std::size_t kBefore = 4;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    out.push_back(line);
    at = end + 1;
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

// Bytes are cut first: a line may be megabytes.
std::string shown(std::string_view line) {
  return shorten(printable(without_ansi(line.substr(0, kExcerptColumns * 8))), kExcerptColumns);
}

struct Place {
  const verdict::Output* output = nullptr;
  bool tail = false;
  std::vector<std::string_view> lines;
  std::size_t line = 0;
};

// The last line that holds `needle`: what is said of a failure later says more.
bool find_last(const Place& from, std::string_view needle, Place& out) {
  for (std::size_t i = from.lines.size(); i-- > 0;) {
    if (from.lines[i].find(needle) == std::string_view::npos) continue;
    out = from;
    out.line = i;
    return true;
  }
  return false;
}

LogExcerpt around(const Place& place, std::optional<std::size_t> fault) {
  LogExcerpt out;
  const std::size_t n = place.lines.size();
  std::size_t begin = n > kExcerptLines ? n - kExcerptLines : 0;
  if (fault) begin = std::min(place.line > kBefore ? place.line - kBefore : 0, begin);
  const std::size_t end = std::min(n, begin + kExcerptLines);
  for (std::size_t i = begin; i < end; ++i) out.lines.push_back(shown(place.lines[i]));
  if (fault) out.fault = place.line - begin;
  out.source = fmt::format("rank {} {}", place.output->rank, place.output->stream);
  if (!place.tail) {
    out.source += fmt::format(", from line {}", begin + 1);
  } else {
    out.source += ", from its end";
  }
  return out;
}

}  // namespace

std::optional<LogExcerpt> log_excerpt(const verdict::RunRecord& run, const trace::Event* fault) {
  // Pieces in the order in which they are believed: stderr before stdout, the worker that failed
  // first before the others.
  std::vector<Place> places;
  for (const bool first : {true, false}) {
    for (const char* stream : {"stderr", "stdout"}) {
      for (const verdict::Output& output : run.outputs) {
        const bool mine = run.first_failed_rank < 0 || output.rank == run.first_failed_rank;
        if (mine != first || (output.stream == "stdout") != (std::string_view(stream) == "stdout"))
          continue;
        if (!output.tail.empty()) places.push_back({&output, true, lines_of(output.tail), 0});
        if (!output.head.empty()) places.push_back({&output, false, lines_of(output.head), 0});
      }
    }
  }
  if (places.empty()) return std::nullopt;
  std::vector<std::string> needles;
  if (fault) {
    std::string message = fault->str("message");
    message = message.substr(0, std::min(message.find('\n'), std::size_t{80}));
    if (message.size() >= 6) needles.push_back(message);
    if (const std::string type = fault->str("type"); type.size() >= 4) needles.push_back(type);
  }
  for (const Place& place : places) {
    const auto& matched = place.output->matched;
    if (!matched.empty() && !place.tail) needles.push_back(matched.back());
  }
  Place found;
  for (const std::string& needle : needles) {
    if (needle.empty()) continue;
    for (const Place& place : places) {
      if (find_last(place, needle, found)) return around(found, found.line);
    }
  }
  return around(places.front(), std::nullopt);
}

}  // namespace warmgate::reports
