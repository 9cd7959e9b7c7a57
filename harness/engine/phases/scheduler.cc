#include "harness/engine/phases/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

namespace warmgate::engine {

namespace {

std::string why_refused(const ServedRequest& request, const SchedulerLimits& limits) {
  if (request.prompt < 1) return "an empty prompt";
  const std::int64_t least = request.prompt + std::min<std::int64_t>(request.output, 1);
  if (least > limits.length)
    return fmt::format("a prompt of {} tokens leaves no room within max_model_len {}",
                       request.prompt, limits.length);
  return {};
}

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, const scenario::Workload& workload,
                     BlockSource& blocks, const PromptIds& prompt_ids)
    : limits_(limits), blocks_(blocks), with_ids_(prompt_ids != nullptr) {
  std::int64_t id = 0;
  std::vector<ServedRequest> all;
  for (const scenario::RequestGroup& group : workload.groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      ServedRequest request;
      request.id = id++;
      request.request_class = group.request_class;
      request.prompt = group.prompt_tokens;
      request.output = std::max<std::int64_t>(group.output_tokens, 0);
      request.arrival = group.start_step;
      request.refused = why_refused(request, limits);
      // Generation ends where the context does.
      request.output = std::min(request.output, limits.length - request.prompt);
      if (with_ids_ && request.refused.empty()) {
        for (std::int64_t p = 0; p < request.prompt; ++p)
          request.ids.push_back(prompt_ids(request.id, p));
      }
      (request.refused.empty() ? all : refused_).push_back(std::move(request));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const ServedRequest& a, const ServedRequest& b) {
    return a.arrival < b.arrival;
  });
  std::move(all.begin(), all.end(), std::back_inserter(waiting_));
}

std::int64_t Scheduler::take_row() {
  if (free_rows_.empty()) return used_rows_++;
  const std::int64_t row = free_rows_.back();
  free_rows_.pop_back();
  return row;
}

Batch Scheduler::next() {
  budget_ = limits_.tokens;
  preempted_ = false;
  // Nobody is there: the clock goes on to the next arrival without empty steps.
  if (running_.empty() && !waiting_.empty()) step_ = std::max(step_, waiting_.front().arrival);
  // Decodes first, so that a long prompt slows nobody down; each pass from the oldest on. An index,
  // since preempting shortens the list from its end.
  for (const bool decode : {true, false}) {
    for (std::size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
      ServedRequest& request = running_[i];
      if ((request.remaining() == 1) != decode) continue;
      schedule(request, std::min(request.remaining(), budget_));
    }
  }
  admit();
  Batch out = batch();
  if (out.requests.empty() && !done())
    no_progress(running_.empty() ? waiting_.front() : running_.front());
  ++step_;
  return out;
}

/// Gives the request its tokens of this step; if the pool is short, at the cost of newer ones.
/// False if it has to wait.
bool Scheduler::schedule(ServedRequest& request, std::int64_t tokens) {
  blocks_.free_window(request.row, request.computed);
  for (;;) {
    if (blocks_.grow(request.row, request.computed + tokens)) {
      request.query = tokens;
      budget_ -= tokens;
      return true;
    }
    if (&running_.back() != &request) {
      preempt_newest();
    } else if (&running_.front() != &request) {
      return false;  // the older ones go on and will give blocks back
    } else if (tokens > 1) {
      tokens /= 2;  // alone: a shorter chunk reaches over fewer blocks of the window groups
    } else {
      no_progress(request);
    }
  }
}

void Scheduler::preempt_newest() {
  ServedRequest victim = std::move(running_.back());
  running_.pop_back();
  budget_ += victim.query;
  blocks_.release(victim.row);
  free_rows_.push_back(victim.row);
  victim.query = victim.computed = 0;  // what it stored is lost; what it produced is its prompt now
  victim.row = -1;
  waiting_.push_front(std::move(victim));
  ++preemptions_;
  preempted_ = true;
}

void Scheduler::admit() {
  // Who was just preempted would only be preempted again.
  while (!preempted_ && budget_ > 0 && !waiting_.empty() && waiting_.front().arrival <= step_ &&
         static_cast<std::int64_t>(running_.size()) < limits_.requests) {
    ServedRequest& request = waiting_.front();
    request.row = take_row();
    running_.push_back(std::move(request));
    waiting_.pop_front();
    ServedRequest& added = running_.back();
    if (schedule(added, std::min(added.remaining(), budget_))) continue;
    // Not now. Nobody behind it may overtake it, else a long one would wait for ever.
    free_rows_.push_back(added.row);
    added.row = -1;
    waiting_.push_front(std::move(added));
    running_.pop_back();
    return;
  }
}

Batch Scheduler::batch() {
  Batch out;
  const auto tier = [&](std::int64_t query) {
    return query <= limits_.indexer_threshold ? 0 : query <= limits_.decode_threshold ? 1 : 2;
  };
  for (int wanted = 0; wanted < 3; ++wanted) {
    for (ServedRequest& request : running_) {
      if (request.query == 0 || tier(request.query) != wanted) continue;
      request.place = out.requests.size();
      out.requests.push_back({request.row, request.computed, request.query});
      if (!with_ids_) continue;
      out.requests.back().ids = std::span(request.ids)
                                    .subspan(static_cast<std::size_t>(request.computed),
                                             static_cast<std::size_t>(request.query));
    }
  }
  return out;
}

void Scheduler::complete(const std::function<std::int64_t(const ServedRequest&)>& sample,
                         const std::function<void(const ServedRequest&)>& finished) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    ServedRequest& request = running_[i];
    request.computed += request.query;
    const bool sampled = request.query > 0 && request.remaining() == 0;
    request.query = 0;
    if (sampled && request.produced < request.output) {
      const std::int64_t token = sample(request);
      request.digest = (request.digest ^ static_cast<std::uint64_t>(token)) * 0x100000001b3u;
      if (with_ids_) request.ids.push_back(token);
      ++request.produced;
    }
    if (sampled && request.produced >= request.output) {
      blocks_.release(request.row);
      free_rows_.push_back(request.row);
      finished(request);
      continue;
    }
    if (kept != i) running_[kept] = std::move(request);
    ++kept;
  }
  running_.resize(kept);
}

void Scheduler::no_progress(const ServedRequest& request) const {
  throw NoProgress(fmt::format(
      "request {} cannot go on: {} of {} tokens stored, {} KV blocks are free and no "
      "other request holds any",
      request.id, request.computed, request.prompt + request.produced, blocks_.free_blocks()));
}

}  // namespace warmgate::engine
