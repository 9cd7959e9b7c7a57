#include "kernels/cuda/indexer/logits.h"

#include "kernels/cuda/indexer/logits_paths.h"

namespace warmgate::kernels::cuda {

namespace {

constexpr std::int64_t kMostTokens = 0x7FFFFFFF;
constexpr std::int64_t kMostColumns = std::int64_t{65535} * 1024;

template <class P>
Reason refuse(const P& p, const Launch& launch) {
  if (launch.arch < 80) return "indexer logits: needs arch >= 80";
  if (p.tokens > kMostTokens) return "indexer logits: more than 2^31 - 1 tokens";
  if (p.logits_stride > kMostColumns) return "indexer logits: more than 67107840 columns";
  return {};
}

template <class P>
void choose(const P& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  if (!logits::fits_hopper(p, launch)) {
    logits::run_hopper(p, launch);
  } else {
    logits::run_general(p, launch);
  }
}

}  // namespace

Reason can_run(const cpu::MqaLogitsPrefill& p, const Launch& launch) { return refuse(p, launch); }
void run(const cpu::MqaLogitsPrefill& p, const Launch& launch) { choose(p, launch); }

Reason can_run(const cpu::MqaLogitsPaged& p, const Launch& launch) {
  if (p.tokens > 0 && (p.next_n <= 0 || p.pages.rows <= 0 || p.table.page_rows <= 0)) {
    return "indexer logits: next_n and page rows must be positive";
  }
  return refuse(p, launch);
}
void run(const cpu::MqaLogitsPaged& p, const Launch& launch) { choose(p, launch); }

}  // namespace warmgate::kernels::cuda
