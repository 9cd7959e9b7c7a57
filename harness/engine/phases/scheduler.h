// Which request runs how many tokens in the next step. Decodes first, then prompts in chunks,
// within B tokens and S requests; blocks are taken as lengths grow and given back behind the
// window. First come, first served: the oldest request always gets on, if need be by preempting the
// newest. Origin: vLLM at d40c3e3c00, v1/core/sched/scheduler.py (no prefix cache, no speculation
// here).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/engine/model.h"
#include "harness/scenario/resolved.h"

namespace warmgate::engine {

/// The KV blocks that the scheduler draws from; rows as in BatchRequest.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// Blocks for positions 0..tokens-1. False, and nothing taken, if the pool is short.
  virtual bool grow(std::int64_t row, std::int64_t tokens) = 0;
  virtual void free_window(std::int64_t row, std::int64_t computed) = 0;
  virtual void release(std::int64_t row) = 0;
  virtual std::int64_t free_blocks() const = 0;
};

struct SchedulerLimits {
  std::int64_t tokens = 0;             // B, a step
  std::int64_t requests = 0;           // S
  std::int64_t length = 0;             // L
  std::int64_t decode_threshold = 1;   // of the attention
  std::int64_t indexer_threshold = 1;  // of the indexer, at most that of the attention
};

struct ServedRequest {
  std::int64_t id = 0;
  std::string request_class;
  std::int64_t prompt = 0;    // tokens
  std::int64_t output = 0;    // tokens wanted
  std::int64_t arrival = 0;   // step
  std::int64_t computed = 0;  // tokens whose KV is stored
  std::int64_t produced = 0;  // tokens sampled
  std::int64_t row = -1;      // of the block tables; -1 while it waits
  std::int64_t query = 0;     // tokens of the step under way
  std::size_t place = 0;      // in the batch of the step under way, where query > 0
  std::uint64_t digest = 0;   // of the sampled ids
  std::vector<std::int64_t>
      ids;              // prompt, then what was sampled; empty where contents do not count
  std::string refused;  // why it was never run; "" if it was
  /// The last sampled token is among those still to compute, as in every decode step.
  std::int64_t remaining() const { return prompt + produced - computed; }
};

/// Nothing can run although work is left: not even one request fits the pool.
class NoProgress : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Scheduler {
 public:
  /// Id of a prompt's token by request and position.
  using PromptIds = std::function<std::int64_t(std::int64_t request, std::int64_t position)>;

  /// With `prompt_ids` the batches carry the ids of their tokens: a request's prompt and whatever
  /// was sampled for it, also when it is computed anew.
  Scheduler(const SchedulerLimits& limits, const scenario::Workload& workload, BlockSource& blocks,
            const PromptIds& prompt_ids = {});

  bool done() const { return waiting_.empty() && running_.empty(); }
  /// The next step's batch, decode-first; never empty unless done(). Throws NoProgress.
  Batch next();
  /// The step ran. `sample` gives the id of the token that follows the request's last one. Calls
  /// `finished` for each request that has all its tokens; its blocks are back by then.
  void complete(const std::function<std::int64_t(const ServedRequest&)>& sample,
                const std::function<void(const ServedRequest&)>& finished);
  /// Requests that can never run (too long for max_model_len, or empty).
  const std::vector<ServedRequest>& refused() const { return refused_; }
  std::int64_t preemptions() const { return preemptions_; }

 private:
  bool schedule(ServedRequest& request, std::int64_t tokens);
  void preempt_newest();
  void admit();
  Batch batch();
  std::int64_t take_row();
  [[noreturn]] void no_progress(const ServedRequest& request) const;

  SchedulerLimits limits_;
  BlockSource& blocks_;
  std::vector<ServedRequest> refused_;
  std::deque<ServedRequest> waiting_;  // by arrival; a preempted request is the oldest of them
  std::deque<ServedRequest> running_;  // by arrival
  std::vector<std::int64_t> free_rows_;
  std::int64_t used_rows_ = 0;  // rows from here on were never used
  std::int64_t budget_ = 0, step_ = 0, preemptions_ = 0;
  bool preempted_ = false, with_ids_ = false;
};

}  // namespace warmgate::engine
