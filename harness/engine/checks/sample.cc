#include "harness/engine/checks/sample.h"

#include <algorithm>
#include <numeric>

namespace warmgate::engine::checks {

namespace {

// What is special about a position; bit 0 the rarest.
unsigned boundaries(std::int64_t p) {
  unsigned out = 0;
  if ((p + 1) % 128 == 0) out |= 1;
  if (p % 256 == 0) out |= 2;
  if (p % 64 == 0) out |= 4;
  if ((p + 1) % 4 == 0) out |= 8;
  return out;
}

std::vector<std::int64_t> all_of(std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

std::vector<std::int64_t> Sampler::rows(const StepHost& step, const std::string& phase,
                                        const Dims& dims) {
  if (step.real_tokens == 0) return {};
  if (extent_ == Extent::kAll) return all_of(step.real_tokens);
  if (phase != phase_) {
    phase_ = phase;
    taken_ = 0;
    seen_.clear();
  }
  std::int64_t decodes = 0;
  for (const BatchRequest& r : step.batch)
    decodes += r.request != kPadding && r.query <= dims.decode_threshold();
  const std::int64_t prefills = step.real_requests - decodes;
  unsigned present = 0;
  std::int64_t by_bit[4] = {-1, -1, -1, -1};
  for (std::int64_t t = 0; t < step.real_tokens; ++t) {
    const unsigned here = boundaries(step.positions[static_cast<std::size_t>(t)]);
    for (unsigned bit = 0; bit < 4; ++bit) {
      if ((here & (1u << bit)) != 0) by_bit[bit] = t;
    }
    present |= here;
  }
  const std::uint64_t kind = present | (step.dummy ? 16u : 0u) |
                             (step.max_seq_len / 4 > dims.topk ? 32u : 0u) |
                             static_cast<std::uint64_t>(std::min<std::int64_t>(decodes, 2)) << 8 |
                             static_cast<std::uint64_t>(std::min<std::int64_t>(prefills, 2)) << 12;
  int& seen = seen_[kind];
  if (seen >= steps_of_a_kind_ || taken_ >= kStepsOfAPhase) return {};
  std::vector<std::int64_t> out = {0, step.real_tokens - 1};
  // The rarest boundary first; the next step of this kind looks at another.
  int skip = seen;
  std::int64_t boundary = -1;
  for (const std::int64_t t : by_bit) {
    if (t < 0) continue;
    boundary = t;
    if (skip-- == 0) break;
  }
  if (boundary >= 0) out.push_back(boundary);
  ++seen;
  ++taken_;
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::int64_t> spread(std::int64_t n, std::int64_t most, std::uint64_t salt) {
  if (n <= most) return all_of(n);
  std::vector<std::int64_t> out = {0, n - 1};
  std::uint64_t x = salt + 0x9e3779b97f4a7c15u;
  while (static_cast<std::int64_t>(out.size()) < most) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    out.push_back(static_cast<std::int64_t>(x % static_cast<std::uint64_t>(n)));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace warmgate::engine::checks
