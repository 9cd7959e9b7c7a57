#include "harness/plan/shrink/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace warmgate::plan::shrink {
namespace {

// How often each pair of the target has to be there.
std::map<Pair, std::int64_t> wanted(const Structure& s, std::int64_t per_kind) {
  std::map<Pair, std::int64_t> out;
  for (std::int64_t id = 0; id < s.layers(); ++id) {
    std::int64_t& count = out[s.pair_of(id)];
    count = std::min(per_kind, count + 1);
  }
  return out;
}

Selection any_layers(const Structure& s, std::int64_t per_kind) {
  auto missing = wanted(s, per_kind);
  Selection out;
  for (std::int64_t id = 0; id < s.layers(); ++id) {
    std::int64_t& left = missing[s.pair_of(id)];
    if (!s.tapped(id) && left <= 0) continue;
    --left;
    out.kept.push_back(id);
  }
  // One layer hides what only the second of a kind does: buffers shared, groups of more than one.
  for (std::int64_t id = 0; out.kept.size() < 2 && id < s.layers(); ++id) {
    if (!std::binary_search(out.kept.begin(), out.kept.end(), id)) {
      out.kept.push_back(id);
      std::sort(out.kept.begin(), out.kept.end());
    }
  }
  for (const std::int64_t tap : s.taps) {
    const auto at = std::lower_bound(out.kept.begin(), out.kept.end(), tap);
    out.taps.push_back(at - out.kept.begin());
  }
  return out;
}

// Taps among the first n layers, each on a layer of its old kind, in their old order and as late as
// possible; empty if that cannot be.
std::vector<std::int64_t> late_taps(const Structure& s, std::int64_t n) {
  std::vector<std::int64_t> out(s.taps.size());
  std::int64_t at = n;
  for (std::size_t i = s.taps.size(); i-- > 0;) {
    const Kind& kind = s.target[static_cast<std::size_t>(s.taps[i])];
    do {
      if (--at < 0) return {};
    } while (s.target[static_cast<std::size_t>(at)] != kind);
    out[i] = at;
  }
  return out;
}

// With n layers the draft layers have the ids from n on: what the period makes of those.
bool keeps_drafts(const Structure& s, std::int64_t n) {
  for (std::size_t i = 0; i < s.draft.size(); ++i) {
    if (s.pair_of(n + static_cast<std::int64_t>(i)).first != s.draft[i]) return false;
  }
  return true;
}

Selection first_layers(const Structure& s, std::int64_t per_kind) {
  Selection out;
  const auto need = wanted(s, per_kind);
  for (std::int64_t n = std::min<std::int64_t>(2, s.layers()); n < s.layers(); ++n) {
    Structure cut = s;
    cut.target.resize(static_cast<std::size_t>(n));
    cut.taps = late_taps(s, n);
    if (cut.taps.size() != s.taps.size()) continue;
    std::map<Pair, std::int64_t> there;
    for (std::int64_t id = 0; id < n; ++id) ++there[cut.pair_of(id)];
    const bool all = std::all_of(need.begin(), need.end(), [&](const auto& item) {
      const auto it = there.find(item.first);
      return it != there.end() && it->second >= item.second;
    });
    if (!all || !keeps_drafts(s, n)) continue;
    out.kept.resize(static_cast<std::size_t>(n));
    std::iota(out.kept.begin(), out.kept.end(), 0);
    out.taps = cut.taps;
    return out;
  }
  out.kept.resize(s.target.size());
  std::iota(out.kept.begin(), out.kept.end(), 0);
  out.taps = s.taps;
  return out;
}

// "" or the rule that `count` experts would break.
std::string broken_rule(const Experts& e, std::int64_t ep, std::int64_t count) {
  if (count < e.top_k) return fmt::format("is less than {} {}", e.top_k_key, e.top_k);
  if (e.count % count != 0) return fmt::format("does not divide {} {}", e.key, e.count);
  // Routing kernels are made for such numbers; another one would take another way.
  if (const std::int64_t even = std::gcd(e.count, std::int64_t{8}); count % even != 0)
    return fmt::format("does not divide by {}, as {} does", even, e.count);
  if (count % ep != 0) return fmt::format("does not divide by --ep {}", ep);
  if (count % e.groups != 0) return fmt::format("does not divide by n_group {}", e.groups);
  // Group scores are the sum of a group's best two (DeepSeek-V3, modeling_deepseek).
  if (e.groups > 1 && count / e.groups < 2 && e.count / e.groups >= 2)
    return fmt::format("leaves each of {} groups less than two", e.groups);
  if (count / e.groups * e.top_k_groups < e.top_k)
    return fmt::format("leaves {} chosen groups less than {} experts", e.top_k_groups, e.top_k);
  return "";
}

}  // namespace

Selection select_layers(const Structure& s, std::int64_t per_kind) {
  return s.periods.empty() ? any_layers(s, per_kind) : first_layers(s, per_kind);
}

std::int64_t select_experts(const Experts& e, std::int64_t ep, std::optional<std::int64_t> wish,
                            Complaints& complaints) {
  if (e.count == 0) {
    if (wish) complaints.add("", "has no experts for --experts");
    return 0;
  }
  if (wish) {
    const std::string broken = broken_rule(e, ep, *wish);
    if (broken.empty()) return *wish;
    complaints.add(e.key, fmt::format("--experts {} {}", *wish, broken));
    return e.count;
  }
  for (std::int64_t count = std::min(2 * e.top_k, e.count); count < e.count; ++count) {
    if (broken_rule(e, ep, count).empty()) return count;
  }
  return e.count;
}

}  // namespace warmgate::plan::shrink
