#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "harness/engine/phases/phases.h"
#include "harness/engine/phases/scheduler.h"

namespace warmgate::engine::phases {

namespace {

class ModelBlocks final : public BlockSource {
 public:
  explicit ModelBlocks(EngineModel& model) : model_(model) {}
  bool grow(std::int64_t row, std::int64_t tokens) override {
    return model_.grow_request(row, tokens);
  }
  void free_window(std::int64_t row, std::int64_t computed) override {
    model_.free_window_blocks(row, computed);
  }
  void release(std::int64_t row) override { model_.release_request(row); }
  std::int64_t free_blocks() const override { return model_.free_blocks(); }

 private:
  EngineModel& model_;
};

/// `request` events: a line each as long as there are few, then one a kind with the count.
class RequestLog {
 public:
  static constexpr int kMostLines = 500;

  /// `synthetic`: ids are hashes, not what a model says.
  RequestLog(Recorder& recorder, bool synthetic) : recorder_(recorder), synthetic_(synthetic) {}

  void add(const ServedRequest& request) {
    const bool ok = request.refused.empty();
    ok_ += ok;
    tokens_ += request.produced;
    if (lines_++ < kMostLines) {
      trace::Line line("request");
      line.num("id", request.id);
      tell(line, request.request_class, ok, request.produced, request.prompt);
      if (ok) {
        line.str("digest", fmt::format("{:016x}", request.digest));
        if (!request.ids.empty()) tell_ids(line, request);
      } else {
        line.str("reason", request.refused);
      }
      recorder_.send(line);
    } else {
      ++rest_[{request.request_class, ok, request.produced, request.prompt}];
    }
  }
  void end() {
    for (const auto& [key, count] : rest_) {
      const auto& [name, ok, tokens, prompt] = key;
      trace::Line line("request");
      line.str("id", "others");
      tell(line, name, ok, tokens, prompt);
      recorder_.send(line.num("count", count));
    }
    recorder_.counter("requests_ok", static_cast<double>(ok_));
    recorder_.counter("output_tokens", static_cast<double>(tokens_));
  }

 private:
  static constexpr std::size_t kMostIds = 32;

  static void tell_ids(trace::Line& line, const ServedRequest& request) {
    const auto sampled = std::span(request.ids).subspan(static_cast<std::size_t>(request.prompt));
    line.raw("ids", fmt::format("[{}]",
                                fmt::join(sampled.first(std::min(sampled.size(), kMostIds)), ",")));
  }
  void tell(trace::Line& line, const std::string& name, bool ok, std::int64_t tokens,
            std::int64_t prompt) const {
    line.str("class", name).flag("ok", ok).num("tokens", tokens).num("prompt_tokens", prompt);
    line.flag("synthetic", synthetic_);
  }
  Recorder& recorder_;
  bool synthetic_;
  int lines_ = 0;
  std::int64_t ok_ = 0, tokens_ = 0;
  std::map<std::tuple<std::string, bool, std::int64_t, std::int64_t>, std::int64_t> rest_;
};

}  // namespace

void serve(Session& s) {
  const auto& limits = s.config.limits;
  ModelBlocks blocks(*s.model);
  const bool real = s.model->executes();
  const auto hashed = [&](std::int64_t id, std::int64_t position) {
    return s.model->sample(id, position);
  };
  Scheduler scheduler({limits.max_num_batched_tokens, limits.max_num_seqs, limits.max_model_len,
                       s.model->decode_threshold(), 1 + s.speculative()},
                      s.config.workload, blocks,
                      real ? Scheduler::PromptIds(hashed) : Scheduler::PromptIds());
  RequestLog requests(s.recorder, !real);
  for (const ServedRequest& request : scheduler.refused()) requests.add(request);
  std::int64_t steps = 0;
  // Decodes have one token: what a drafter would propose is not verified here, so it takes no part.
  while (!scheduler.done()) {
    s.step(scheduler.next(), false);
    ++steps;
    scheduler.complete(
        [&](const ServedRequest& request) {
          return real ? s.model->sampled()[request.place]
                      : hashed(request.id, request.prompt + request.produced);
        },
        [&](const ServedRequest& request) { requests.add(request); });
  }
  requests.end();
  s.recorder.counter("steps_served", static_cast<double>(steps));
  s.recorder.counter("serve_peak_bytes", static_cast<double>(s.memory->peak_bytes()));
  s.recorder.counter("preemptions", static_cast<double>(scheduler.preemptions()));
}

}  // namespace warmgate::engine::phases
