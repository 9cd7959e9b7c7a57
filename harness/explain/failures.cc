#include "harness/explain/failures.h"

#include <algorithm>

#include "harness/explain/text.h"

namespace warmgate::explain::internal {

int Failures::add(Failure failure) {
  if (all_.size() >= kMost) return -1;
  failure.order = all_.size();
  all_.push_back(std::move(failure));
  return static_cast<int>(all_.size()) - 1;
}

void Failures::attach(int index, const Exception& exception, const std::vector<Frame>& frames,
                      bool newest_first, const Grammar& grammar) {
  Failure& failure = all_[static_cast<std::size_t>(index)];
  if (!exception.type.empty()) {
    failure.type = shown_masked(exception.type, 120);
    failure.message = shown_masked(exception.message, 2000);
  }
  const Innermost inner = innermost(frames, newest_first, grammar.ignore_files);
  failure.function = inner.function;
  failure.file = inner.file;
  failure.frames = inner.frames;
  std::string doubtful;
  for (const std::string& function : inner.functions) {
    const auto it = grammar.frame_phases.find(function);
    if (it == grammar.frame_phases.end()) continue;
    if (!it->second.ends_with('?')) {
      failure.phase = it->second;
      doubtful.clear();
      break;
    }
    if (doubtful.empty()) doubtful = it->second.substr(0, it->second.size() - 1);
  }
  if (!doubtful.empty()) failure.phase = doubtful;
  failure.traced = true;
}

bool Failures::told_before(int index) const {
  const Failure& failure = all_[static_cast<std::size_t>(index)];
  return std::any_of(all_.begin(), all_.begin() + index, [&](const Failure& other) {
    return other.worker == failure.worker && !other.type.empty() && other.type == failure.type &&
           other.message == failure.message;
  });
}

void Failures::recover(int source, std::int64_t from) {
  for (Failure& failure : all_) {
    if (failure.source == source && failure.when.line >= from) failure.recovered = true;
  }
}

int Failures::latest(int source, std::int64_t from) const {
  for (std::size_t i = all_.size(); i-- > 0;) {
    const Failure& failure = all_[i];
    if (failure.source != source) continue;
    return failure.when.line >= from && !failure.recovered ? static_cast<int>(i) : -1;
  }
  return -1;
}

bool before(const Failure& a, const Failure& b) {
  if (a.source == b.source) return a.when.line < b.when.line;
  if (a.t_ns >= 0 && b.t_ns >= 0 && a.t_ns != b.t_ns) return a.t_ns < b.t_ns;
  const double gap = seconds_between(b.when, a.when);
  if (has_time(gap) && gap != 0) return gap < 0;
  return a.order < b.order;
}

int Failures::first(Sort sort) const {
  int best = -1;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Failure& failure = all_[i];
    if (failure.sort != sort || failure.recovered) continue;
    if (best < 0 || before(failure, all_[static_cast<std::size_t>(best)]))
      best = static_cast<int>(i);
  }
  return best;
}

namespace {

std::string numbers_masked(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      out += text[i++];
      continue;
    }
    while (i < text.size() &&
           (is_digit(text[i]) ||
            (i + 1 < text.size() && (text[i] == '.' || text[i] == ',') && is_digit(text[i + 1])))) {
      ++i;
    }
    out += "<r>";
  }
  return out;
}

// What is cut does not end with what the rest would have closed.
std::string without_open_end(std::string text) {
  constexpr std::string_view kMore = "…";
  const bool more = text.ends_with(kMore);
  if (more) text.resize(text.size() - kMore.size());
  if (text.ends_with("<r")) text.resize(text.size() - 2);  // of a number
  const std::size_t last = text.find_last_not_of(" :([{=<-");
  text.resize(last == std::string::npos ? 0 : last + 1);
  return more ? text.append(kMore) : text;
}

}  // namespace

std::string fingerprint_type(const Failure& failure, const Grammar& grammar) {
  if (failure.type.empty()) return without_open_end(shown(numbers_masked(failure.text), 80));
  const auto plain = [&](const std::string& type) {
    return type == failure.type || failure.type.ends_with("." + type);
  };
  if (failure.message.empty() ||
      std::any_of(grammar.plain_types.begin(), grammar.plain_types.end(), plain)) {
    return failure.type;
  }
  const std::string whole = failure.type + ": " + numbers_masked(failure.message);
  for (const std::string& type : grammar.types) {
    if (whole.starts_with(type)) return type;
  }
  // The first clause of the message.
  const std::size_t from = failure.type.size() + 2;
  std::size_t end = from;
  for (; end < whole.size() && end < from + 80; ++end) {
    const char c = whole[end];
    // `f(x)` is a name, and only ` (x)` an aside.
    const bool aside = c == '(' && whole[end - 1] == ' ';
    const bool stop = c == ',' || aside || c == ';' || c == '\'' || c == '"' || c == '`' ||
                      ((c == '.' || c == ':') &&
                       (end + 1 == whole.size() || whole[end + 1] == ' ') && end > from + 12);
    if (stop) break;
  }
  if (end == from) return failure.type;
  const std::string cut = shown(without_open_end(whole.substr(0, end)), 160);
  return cut.size() <= from ? failure.type : cut;
}

}  // namespace warmgate::explain::internal
