// Which entries are chosen, and in which order they stand.
#include "kernels/cpu/topk.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/visible.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

// Rows of every length around k; columns outside a row's range hold the best scores there are.
void choose(Random& random, Table& table, std::int64_t k, bool ties, bool from_zero) {
  const std::vector<std::int64_t> lengths{0, 1, 3, k - 1, k, k + 1, 2 * k, 5 * k + 3};
  const auto tokens = static_cast<std::int64_t>(lengths.size());
  const std::int64_t stride = 5 * k + 40, out_stride = k + 3;
  std::vector<float> logits(static_cast<std::size_t>(tokens * stride), 1e30F);
  std::vector<std::int32_t> starts, ends;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t count = lengths[static_cast<std::size_t>(t)];
    starts.push_back(from_zero ? 0 : static_cast<std::int32_t>(random.integer(0, 30)));
    ends.push_back(starts.back() + static_cast<std::int32_t>(count));
    for (std::int64_t j = 0; j < count; ++j) {
      const double score = ties ? static_cast<double>(random.integer(-2, 2)) : random.normal();
      logits[static_cast<std::size_t>(t * stride + starts.back() + j)] = static_cast<float>(score);
    }
  }
  Output<std::int32_t> chosen(tokens * out_stride);
  device()->topk_per_row({tokens, k, logits.data(), stride, from_zero ? nullptr : starts.data(),
                          ends.data(), chosen.data(), out_stride});
  std::int64_t wrong = 0, order = 0, poisoned = chosen.overrun();
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto i = static_cast<std::size_t>(t);
    const auto count = static_cast<std::size_t>(lengths[i]);
    const ref::Vector scores = from_fp32(
        std::span(logits).subspan(static_cast<std::size_t>(t * stride + starts[i]), count));
    const auto row = chosen.view().subspan(static_cast<std::size_t>(t * out_stride),
                                           static_cast<std::size_t>(k));
    wrong += ref::judge_topk(scores, k, row, 0).empty() ? 0 : 1;
    const auto filled = std::find(row.begin(), row.end(), -1);
    order += std::is_sorted(row.begin(), filled) ? 0 : 1;
    // Of equal scores at the last place the lower index: no index left out may precede a chosen
    // one of the same score.
    for (auto chose = row.begin(); chose != filled; ++chose) {
      for (std::int32_t j = 0; j < *chose; ++j) {
        const bool out = std::find(row.begin(), filled, j) == filled;
        const bool equal =
            scores[static_cast<std::size_t>(j)] == scores[static_cast<std::size_t>(*chose)];
        order += out && equal ? 1 : 0;
      }
    }
    poisoned += chosen.written(t * out_stride + k, out_stride - k);
  }
  const std::string inputs = "K " + std::to_string(k) + ", rows of 0,1,3,K-1,K,K+1,2K,5K+3" +
                             (ties ? ", ties" : "") + (from_zero ? "" : ", ranges");
  table.exact("top-k: the right entries", inputs, wrong, poisoned);
  table.exact("top-k: ascending, ties to the lower", inputs, order);
}

void top_k(Random& random, Table& table) {
  choose(random, table, 8, false, true);
  choose(random, table, 8, true, false);
  choose(random, table, 64, false, false);
  choose(random, table, 64, true, true);
}

void nan_ranks_lowest(Random& random, Table& table) {
  std::vector<float> logits = random.fp32(40);
  for (std::size_t i = 3; i < 40; i += 4) logits[i] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int32_t> end{40};
  Output<std::int32_t> chosen(30);
  device()->topk_per_row({1, 30, logits.data(), 40, nullptr, end.data(), chosen.data(), 30});
  std::int64_t wrong = 0;
  for (const std::int32_t j : chosen.view()) {
    wrong += j >= 0 && std::isnan(logits[static_cast<std::size_t>(j)]) ? 1 : 0;
  }
  table.exact("top-k: NaN only if nothing else is left", "K 30, 30 of 40 numbers", wrong);
}

// The shortcut must give what scoring gives.
void short_context(Random& random, Table& table) {
  const std::int64_t k = 16, stride = 20;
  const std::vector<std::int64_t> positions{0, 1, 2, 3, 4, 6, 7, 8, 30, 62, 63, 64, 66};
  const auto tokens = static_cast<std::int64_t>(positions.size());
  Output<std::int32_t> filled(tokens * stride), chosen(tokens * stride);
  device()->fill_short_context({tokens, k, 4, positions.data(), filled.data(), stride});
  const auto logits = random.fp32(tokens * k);
  std::vector<std::int32_t> ends;
  std::int64_t differ = 0, poisoned = filled.overrun();
  for (const std::int64_t p : positions) {
    ends.push_back(static_cast<std::int32_t>(ref::visible_entries(p, 4).size()));
  }
  device()->topk_per_row(
      {tokens, k, logits.data(), k, nullptr, ends.data(), chosen.data(), stride});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto visible = ref::visible_entries(positions[static_cast<std::size_t>(t)], 4);
    for (std::int64_t i = 0; i < k; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const std::int64_t want = index < visible.size() ? visible[index] : -1;
      differ += filled[t * stride + i] == want ? 0 : 1;
      differ += chosen[t * stride + i] == want ? 0 : 1;
    }
    poisoned += filled.written(t * stride + k, stride - k);
  }
  table.exact("top-k: short context = scoring", "K 16, p 0..66", differ, poisoned);
}

}  // namespace

std::vector<Case> topk_cases() {
  return {
      {"top_k", top_k}, {"top_k_nan", nan_ranks_lowest}, {"top_k_short_context", short_context}};
}

}  // namespace warmgate::numerics
