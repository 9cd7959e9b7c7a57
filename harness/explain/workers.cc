#include "harness/explain/workers.h"

#include <algorithm>

#include "harness/explain/text.h"

namespace warmgate::explain::internal {

int rank_of_label(std::string_view label, int tp_size) {
  const auto after = [&](std::string_view word) -> int {
    for (std::size_t at = label.find(word); at != std::string_view::npos;
         at = label.find(word, at + 1)) {
      std::size_t end = at + word.size();
      int value = 0, count = 0;
      for (; end < label.size() && is_digit(label[end]) && count < 7; ++end, ++count) {
        value = value * 10 + (label[end] - '0');
      }
      const bool starts = at == 0 || label[at - 1] == '_' || label[at - 1] == ' ';
      if (count > 0 && starts) return value;
    }
    return -1;
  };
  for (const std::string_view word : {"rank=", "RANK ", "rank ", "rank", "device ", "Shard "}) {
    if (const int rank = after(word); rank >= 0) return rank;
  }
  const int tp = after("TP"), pp = after("PP");
  if (tp >= 0 && pp > 0) return tp_size > 0 ? pp * tp_size + tp : -1;
  if (tp >= 0) return tp;
  if (pp >= 0) return pp;
  return after("EP");
}

int Workers::add(std::string label, int source) {
  if (all_.size() >= kMost) return static_cast<int>(kMost) - 1;
  if (all_.size() + 1 == kMost) label = "others";
  Worker worker;
  worker.label = std::move(label);
  worker.source = source;
  all_.push_back(std::move(worker));
  return static_cast<int>(all_.size()) - 1;
}

int Workers::named(std::string_view label, int source) {
  const std::string clean = shown(label, 80);
  const auto it = by_label_.find(std::pair(source, clean));
  if (it != by_label_.end()) return it->second;
  const int index = add(clean, source);
  if (all_.size() < kMost) by_label_.emplace(std::pair(source, clean), index);
  return index;
}

int Workers::of(const Line& line, int source) {
  if (last_ >= 0 && source == last_source_ && line.pid == last_pid_ &&
      all_[static_cast<std::size_t>(last_)].label == line.worker) {
    return last_;
  }
  int index;
  if (line.pid < 0) {
    index = named(line.worker, source);
  } else {
    const std::int64_t key = (static_cast<std::int64_t>(source) << 40) | line.pid;
    const auto it = by_pid_.find(key);
    if (it != by_pid_.end()) {
      index = it->second;
      Worker& worker = all_[static_cast<std::size_t>(index)];
      // "Worker" does not take back what "Worker_TP0" said.
      const bool vaguer = std::string_view(worker.label).starts_with(line.worker);
      if (index + 1 < static_cast<int>(kMost) && !vaguer) worker.label = shown(line.worker, 80);
    } else {
      index = add(shown(line.worker, 80), source);
      if (all_.size() < kMost) by_pid_.emplace(key, index);
    }
  }
  last_ = index;
  last_source_ = source;
  last_pid_ = line.pid;
  return index;
}

std::optional<int> Workers::rank(int index) const {
  const Worker& worker = (*this)[index];
  if (worker.printed_rank) return worker.printed_rank;
  const int rank = rank_of_label(worker.label, tp_);
  return rank >= 0 ? std::optional(rank) : std::nullopt;
}

std::vector<std::string> Workers::labels() const {
  std::vector<std::string> out;
  for (const Worker& worker : all_) {
    if (worker.label.empty() || std::find(out.begin(), out.end(), worker.label) != out.end())
      continue;
    out.push_back(worker.label);
    if (out.size() >= 64) break;
  }
  return out;
}

}  // namespace warmgate::explain::internal
