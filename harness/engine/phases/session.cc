#include "harness/engine/phases/session.h"

#include <algorithm>
#include <iterator>

namespace warmgate::engine {

void Session::barrier() {
  const std::int64_t seq = collectives.barrier("world");
  recorder.collective("world", "barrier", 0, seq);
}

void Session::step(const Batch& batch, bool with_draft) {
  StepShape shape;
  shape.dummy = batch.dummy;
  const std::int64_t threshold = model->decode_threshold();
  for (const BatchRequest& request : batch.requests) {
    shape.rows += request.query;
    shape.longest = std::max(shape.longest, request.computed + request.query);
    ++(request.query > threshold ? shape.prefills : shape.decodes);
  }
  if (with_draft) shape.draft_rows = model->draft_rows(shape.prefills + shape.decodes);
  steps.add(shape);
  const bool spoil = spoils && batch.dummy;
  if (spoil) {
    static constexpr std::uint8_t kPatterns[] = {0xff, 0x7f, 0x00};
    model->spoil(kPatterns[spoiled++ % std::size(kPatterns)]);
  }
  model->step(batch, with_draft);
  if (spoil) model->restore_null_block();
  recorder.heartbeat();
}

}  // namespace warmgate::engine
