// Bytes of a model's weights, as arithmetic that can be printed and checked: one line for each sort
// of matrix. Norms, biases and other vectors are left out (below one part in a thousand).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/plan/shrink/reader.h"
#include "harness/plan/shrink/structure.h"

namespace warmgate::plan::shrink {

struct Parallel {
  std::int64_t tp = 1, ep = 1;
};

/// Bytes an element of a weight takes.
struct Precision {
  double plain = 2;                // embeddings, router, whatever quantisation leaves alone
  double dense = 2;                // linear layers
  double expert = 2;               // routed experts
  std::vector<std::string> notes;  // what was assumed
};
/// From torch_dtype (dtype), quantization_config and expert_dtype. A quantisation that is not known
/// counts as none: an upper bound, and a note.
Precision precision_of(Reader& reader);

enum class Stored { kPlain, kDense, kExpert, kFloat32, kInt64 };

struct Weight {
  std::string name;     // "experts gate, up, down"
  std::string product;  // "16 x 3 x 4096 x 2048"
  double count = 1;     // layers that have it
  double elements = 0;  // in one layer
  double bytes_each = 2;
  double shards = 1;  // ranks that it is split over
  double bytes() const { return count * elements * bytes_each; }
  double bytes_per_rank() const { return bytes() / shards; }
};

class WeightList {
 public:
  WeightList(Precision precision, Parallel parallel)
      : precision_(std::move(precision)), parallel_(parallel) {}
  /// `count` layers with a weight of the product of `factors` elements, split over `shards` ranks.
  /// Nothing is added for a count or a product of zero.
  void add(const std::string& name, std::int64_t count, const std::vector<std::int64_t>& factors,
           Stored stored, std::int64_t shards);
  std::int64_t tp() const { return parallel_.tp; }
  /// Ranks that the routed experts are split over.
  std::int64_t expert_shards() const { return parallel_.ep > 1 ? parallel_.ep : parallel_.tp; }
  const std::vector<Weight>& weights() const { return weights_; }
  double bytes() const;
  double bytes_per_rank() const;
  double elements() const;

 private:
  Precision precision_;
  Parallel parallel_;
  std::vector<Weight> weights_;
};

}  // namespace warmgate::plan::shrink
