#include "kernels/reference/indexer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "kernels/reference/linear.h"

namespace warmgate::reference {

Vector indexer_query(View qr, const Matrix& wq_b, std::int64_t dim, const Rope& rope,
                     std::int64_t position) {
  return rotate_heads(project(qr, wq_b), dim, rope, position);
}

std::vector<Quantised> quantise_indexer_query(View query, std::int64_t dim) {
  const auto size = static_cast<std::size_t>(dim);
  std::vector<Quantised> out;
  for (std::size_t at = 0; at < query.size(); at += size) {
    out.push_back(quantise_e4m3(query.subspan(at, size), 1e-4));
  }
  return out;
}

Vector indexer_weights(View w, std::int64_t dim, View query_scales) {
  if (w.size() != query_scales.size()) {
    throw std::invalid_argument("indexer weights: not one scale a head");
  }
  Vector out;
  for (std::size_t head = 0; head < w.size(); ++head) {
    out.push_back(w[head] / std::sqrt(static_cast<double>(dim)) /
                  std::sqrt(static_cast<double>(w.size())) * query_scales[head]);
  }
  return out;
}

Vector indexer_scores(View query, const Matrix& keys, View weights) {
  const auto dim = static_cast<std::size_t>(keys.cols);
  if (query.size() != dim * weights.size()) {
    throw std::invalid_argument("indexer scores: query, keys and weights do not match");
  }
  Vector out;
  for (std::int64_t j = 0; j < keys.rows; ++j) {
    const View key = keys.row(j);
    double score = 0;
    for (std::size_t head = 0; head < weights.size(); ++head) {
      double product = 0;
      for (std::size_t i = 0; i < dim; ++i) product += query[head * dim + i] * key[i];
      score += std::max(product, 0.0) * weights[head];
    }
    out.push_back(score);
  }
  return out;
}

std::string judge_topk(View scores, std::int64_t k, std::span<const std::int32_t> chosen,
                       double epsilon) {
  const auto visible = static_cast<std::int64_t>(scores.size());
  const auto wanted = std::min(k, visible);
  if (static_cast<std::int64_t>(chosen.size()) < wanted) return "the row is too short";
  Vector best(scores.begin(), scores.end());
  std::sort(best.begin(), best.end(), std::greater<>());
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int32_t entry = chosen[i];
    const std::string where = "place " + std::to_string(i) + ": " + std::to_string(entry);
    if (static_cast<std::int64_t>(i) >= wanted) {
      if (entry != -1) return where + " after the last of " + std::to_string(wanted);
      continue;
    }
    if (entry < 0 || entry >= visible) return where + " is not visible";
    if (!seen.insert(entry).second) return where + " was chosen before";
    const double bound = best[static_cast<std::size_t>(wanted - 1)] - epsilon;
    if (!(scores[static_cast<std::size_t>(entry)] >= bound)) {
      return where + " scores below the best " + std::to_string(wanted);
    }
  }
  return "";
}

}  // namespace warmgate::reference
