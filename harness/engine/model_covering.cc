// Steps that together reach every host-side branch of the forward.
#include <algorithm>

#include "harness/engine/model_impl.h"

namespace warmgate::engine {

namespace {

class Steps {
 public:
  explicit Steps(const Dims& dims) : d_(dims) {}

  /// `count` requests of `query` tokens that end at context `length`; as many as the limits allow.
  void add(std::int64_t count, std::int64_t query, std::int64_t length) {
    query = std::min({query, d_.max_tokens, d_.max_model_len});
    length = std::clamp(length, query, d_.max_model_len);
    count = std::min({count, d_.max_seqs, d_.max_tokens / query});
    Batch batch;
    batch.dummy = true;
    for (std::int64_t r = 0; r < count; ++r) {
      batch.requests.push_back({r, length - query, query});
    }
    if (count > 0) out.push_back(std::move(batch));
  }
  std::vector<Batch> out;

 private:
  const Dims& d_;
};

}  // namespace

std::vector<Batch> EngineModel::covering_batches() const {
  const Dims& d = impl_->dims;
  Steps steps(d);
  const std::int64_t longest = d.max_model_len;
  const std::int64_t decode = 1 + d.speculative;
  const std::int64_t many = 33 / decode + 1;  // over 32 rows another top-k kernel may serve
  // Decode: no window of 128 ends; one ends; scoring of few and of many rows at full context.
  steps.add(1, 1, 2);
  steps.add(1, 1, 128);
  steps.add(1, 1, longest);
  steps.add(1, decode, longest);
  steps.add(many, decode, longest);
  // Lengths that attention takes for decode and the indexer for prefill.
  if (d.decode_threshold() > decode) {
    steps.add(1, d.decode_threshold(), d.decode_threshold());
    steps.add(1, d.decode_threshold(), longest);
  }
  // Prefill: short, long, several at once, behind decodes.
  const std::int64_t prefill = std::max<std::int64_t>(d.decode_threshold() + 1, 128);
  steps.add(1, prefill, prefill);
  steps.add(1, prefill, longest);
  steps.add(5, d.decode_threshold() + 1, longest);
  if (!steps.out.empty() && d.max_seqs >= 2 && d.max_tokens > d.decode_threshold() + 1) {
    steps.add(1, std::min(prefill, d.max_tokens - 1), longest);
    Batch& mixed = steps.out.back();
    mixed.requests.insert(mixed.requests.begin(), {1, longest - 1, 1});
  }
  return steps.out;
}

}  // namespace warmgate::engine
