#include "harness/engine/layers/batch_split.h"

namespace warmgate::engine {

Split split_batch(std::span<const BatchRequest> requests, std::int64_t threshold, bool uniform) {
  Split split;
  bool decoding = true;
  for (const BatchRequest& request : requests) {
    decoding = decoding && request.query <= threshold &&
               (!uniform || request.query == requests.front().query);
    (decoding ? split.decodes : split.prefills) += 1;
    (decoding ? split.decode_tokens : split.prefill_tokens) += request.query;
  }
  return split;
}

}  // namespace warmgate::engine
