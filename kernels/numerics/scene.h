// One attention layer with its caches, and its two forms beside the oracle: decode over cache
// pages, prefill over a gathered workspace.
#pragma once

#include "kernels/numerics/paged.h"
#include "kernels/reference/metadata.h"

namespace warmgate::numerics {

/// `count` tokens of a request from position `first`, as one step brings them.
struct Piece {
  std::int64_t request = 0, first = 0, count = 1;
};

struct SceneShape {
  std::int64_t ratio = 1;             // 1: window only; 4: top_k of the entries; 128: all entries
  std::int64_t top_k = 8;             // ratio 4
  std::vector<std::int64_t> lengths;  // of each request
  double query_size = 1;
};

class Scene {
 public:
  Scene(Random& random, SceneShape shape);

  /// What attention must give for these tokens, heads side by side.
  [[nodiscard]] reference::Matrix oracle(const std::vector<Piece>& pieces) const;

  /// The op over pages. Index lists by definition, or (lists_by_ops) as the metadata ops write
  /// them.
  std::vector<Bf16> decode(const std::vector<Piece>& pieces, bool lists_by_ops = false);

  /// The op over a workspace: gather, combined indices by definition, attend. Unused rows and index
  /// tails are filled with `poison`.
  std::vector<Bf16> prefill(const std::vector<Piece>& pieces, std::uint8_t poison = 0x7E);

  /// Every token of every request, one piece each.
  [[nodiscard]] std::vector<Piece> all() const;

  static constexpr std::int64_t kHeads = 4;
  Cache window, entries;
  /// One ordinary, none (-inf), all (+inf), one large.
  std::vector<float> sinks;
  std::int64_t overrun = 0;         // guard elements the ops wrote
  std::int64_t null_page_uses = 0;  // indices with a positive length that lead to page 0

 private:
  [[nodiscard]] std::vector<std::int64_t> chosen(std::int64_t request, std::int64_t position) const;
  [[nodiscard]] std::vector<Bf16> queries(const std::vector<Piece>& pieces) const;
  SceneShape shape_;
  std::vector<std::vector<Bf16>> q_;  // per request, all positions
  std::vector<std::vector<std::vector<std::int64_t>>> chosen_;
};

}  // namespace warmgate::numerics
