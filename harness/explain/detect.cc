// Which engine wrote this? Evidence has weights; until it suffices, lines are kept and read later.
#include <algorithm>

#include "harness/explain/session.h"

namespace warmgate::explain::internal {
namespace {

constexpr int kEnough = 3;
constexpr std::size_t kMostKeptLines = 2000, kMostKeptBytes = 1 << 20;

}  // namespace

const Grammar& ReaderImpl::grammar(const Source& source) const {
  return source.grammar < 0 ? set_->common
                            : set_->grammars[static_cast<std::size_t>(source.grammar)];
}

void ReaderImpl::weigh(Source& source, std::string_view raw) {
  Line line;
  source.text.read(raw, line);
  const auto add = [&](const GrammarSet::Evidence& evidence) {
    source.scores[static_cast<std::size_t>(evidence.grammar)] += evidence.weight;
  };
  const auto knows = [&](std::string_view message) {
    set_->detect.match(message.substr(0, 512), found_);
    return !found_.empty();
  };
  // Looking behind every space is dear, and a wrapper that is there is there from the start.
  const bool look = ++source.weighed < 300 && line.form == Form::kNone && line.depth == 0;
  if (look && !knows(line.message)) {
    source.text.second_chance(line.text, knows, line);
  }
  for (const auto& evidence : set_->forms[static_cast<std::size_t>(line.form)]) add(evidence);
  set_->detect.match(line.message.substr(0, 4096), found_);
  for (const int number : found_) add(set_->evidence[static_cast<std::size_t>(number)]);
  if (line.depth > 0) {  // what processes are called is evidence as well
    set_->detect.match(line.worker, found_);
    for (const int number : found_) add(set_->evidence[static_cast<std::size_t>(number)]);
  }
}

int ReaderImpl::winner(const Source& source, int least) const {
  int best = -1, most = 0, second = 0;
  for (std::size_t i = 0; i < source.scores.size(); ++i) {
    if (source.scores[i] > most) {
      second = most;
      most = source.scores[i];
      best = static_cast<int>(i);
    } else {
      second = std::max(second, source.scores[i]);
    }
  }
  return most >= least && most > second ? best : -1;
}

void ReaderImpl::replay(Source& source, int grammar) {
  source.grammar = grammar;
  source.known = grammar >= 0;
  std::deque<Source::Kept> kept;
  kept.swap(source.kept);
  source.kept_bytes = 0;
  const std::int64_t now = source.t_ns;
  for (const Source::Kept& line : kept) {
    source.t_ns = line.t_ns;
    read_line(source, line.raw, line.number);
  }
  source.t_ns = now;
}

void ReaderImpl::take_line(Source& source, std::string_view raw, std::int64_t number) {
  if (source.known) return read_line(source, raw, number);
  weigh(source, raw);
  source.kept.push_back({std::string(raw), number, source.t_ns});
  source.kept_bytes += raw.size();
  int engine = winner(source, kEnough);
  source.sure = engine >= 0;
  const bool full = source.kept.size() >= kMostKeptLines || source.kept_bytes >= kMostKeptBytes;
  if (engine < 0 && full) engine = winner(source, 1);
  if (engine >= 0) return replay(source, engine);
  if (full) {  // nobody's: read by what is common to all, and keep looking
    replay(source, -1);
    source.known = false;
  }
}

}  // namespace warmgate::explain::internal
