// Steps that together reach every host-side branch of the forward.
#include <algorithm>

#include "harness/engine/memory/workspace_plan.h"
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
  /// `rows` tokens over as many requests as the limits allow, none longer than `most`, shorter ones
  /// first; nothing if they do not hold that many.
  void add_rows(std::int64_t rows, std::int64_t most, std::int64_t length) {
    const std::int64_t count = std::min(rows, d_.max_seqs);
    if (rows > d_.max_tokens || (rows + count - 1) / count > std::min(most, length)) return;
    Batch batch;
    batch.dummy = true;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t query = rows / count + (r >= count - rows % count ? 1 : 0);
      batch.requests.push_back({r, length - query, query});
    }
    out.push_back(std::move(batch));
  }
  std::vector<Batch> out;

 private:
  const Dims& d_;
};

// What kernels specialise on besides shapes: integers that are 1, a multiple of 16 or neither, and
// pointers that are 16-byte aligned or not. The steps above have counts that are mostly round.
void add_classes(Steps& steps, const Dims& d) {
  const std::int64_t longest = d.max_model_len;
  for (const std::int64_t requests : {2, 3, 16})
    if (requests <= d.max_seqs) steps.add(requests, 1, longest);
  // Prefills as long as a multiple of 16, and not.
  const std::int64_t most_rows = std::min(d.max_tokens, longest), few = d.decode_threshold() + 1;
  const std::int64_t around = std::min(most_rows, std::max<std::int64_t>(few, 129));
  const std::int64_t round = around / 16 * 16, odd_rows = around % 16 == 0 ? around - 1 : around;
  for (const std::int64_t query : {std::int64_t{16}, round, odd_rows})
    if (query >= 1 && query <= most_rows) steps.add(1, query, query);
  // Prefills too large for the indexer's logits together: the second piece begins off a multiple of
  // four rows. Only large limits reach that.
  if (!d.has(Kind::kC4a)) return;
  const std::int64_t keys = longest / 4, most = kMaxLogitsBytes / 4;
  for (std::int64_t n = 2; n <= std::min<std::int64_t>(d.max_seqs, 40); ++n) {
    const std::int64_t odd = few + ((n - 1) * few % 4 == 0 ? 1 : 0);
    const std::int64_t before = (n - 2) * few + odd;
    const std::int64_t rest = std::min(d.max_tokens - before, longest);
    if (rest < odd) break;
    if ((before + rest) * n * keys <= most) continue;
    Batch batch;
    batch.dummy = true;
    for (std::int64_t r = 0; r < n; ++r) {
      const std::int64_t take = r + 1 == n ? rest : r == 0 ? odd : few;
      batch.requests.push_back({r, longest - take, take});
    }
    steps.out.push_back(std::move(batch));
    return;
  }
  // One request alone is cut into pieces; a context at which a piece's length is no multiple of 4.
  for (std::int64_t context = longest; context >= longest / 2 && context >= most_rows;
       context -= 4) {
    const std::int64_t piece = most / std::max<std::int64_t>(context / 4, 1);
    if (piece >= most_rows) return;
    if (piece % 4 != 0) return steps.add(1, most_rows, context);
  }
}

}  // namespace

std::vector<Batch> EngineModel::covering_batches() const {
  const Dims& d = impl_->dims;
  Steps steps(d);
  const std::int64_t longest = d.max_model_len;
  const std::int64_t decode = 1 + d.speculative;
  const std::int64_t many = 33;  // rows; over 32 another top-k kernel may serve
  // Decode: no window of 128 ends; one ends; scoring of few and of many rows at full context.
  steps.add(1, 1, 2);
  steps.add(1, 1, 128);
  steps.add(1, 1, longest);
  steps.add(1, decode, longest);
  // Many rows: of queries that may differ, and of equal ones, which is all that some indexers take.
  steps.add_rows(many, decode, longest);
  for (std::int64_t query = 1; query <= std::min(decode, longest); ++query) {
    const std::int64_t requests = (many + query - 1) / query;
    if (requests > d.max_seqs || requests * query > d.max_tokens) continue;
    steps.add(requests, query, longest);
    break;
  }
  // For an indexer that takes equal queries only, what differs from the first counts as prefill.
  if (d.max_seqs >= 2 && d.max_tokens >= 3 && decode >= 2 && longest >= 2)
    steps.out.push_back({{{0, longest - 1, 1}, {1, longest - 2, 2}}, true});
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
  // Decodes of unequal length: where the indexer wants them uniform, those after the first length
  // are prefills to it, however short.
  if (d.speculative > 0 && d.max_seqs >= 2 && d.max_tokens >= 3) {
    steps.add(1, 2, longest);
    if (!steps.out.empty() && steps.out.back().requests.front().query == 2) {
      Batch& unequal = steps.out.back();
      unequal.requests.insert(unequal.requests.begin(), {1, longest - 1, 1});
    }
  }
  if (impl_->context.seam_is("warmup.row_classes", "every_class")) add_classes(steps, d);
  return steps.out;
}

}  // namespace warmgate::engine
