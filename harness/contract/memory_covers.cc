// memory-covers: the step memory that profiling measured is enough for serving, and not absurdly
// more. What lasts (weights, caches, buffers) is known by its size; what comes and goes is known
// from profiling alone, and the KV cache takes everything that profiling left.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kMemoryCovers = "memory-covers";

/// Absurd: more than this many times what any later phase took at once, and this much on top.
constexpr double kTooMany = 2;
constexpr std::int64_t kSlackBytes = std::int64_t{1} << 30;
/// As much more than measured is the same: the smallest segment that a caching allocator takes.
constexpr std::int64_t kSameBytes = std::int64_t{2} << 20;

struct Use {
  std::int64_t bytes = 0;  // above what lasted
  std::size_t event = 0;
  std::string phase;
};

struct Rank {
  std::optional<Use> profile, serve, later;  // later: the largest of warmup, capture, serve
  std::optional<std::int64_t> lasting;       // at the end of the phase before
  std::optional<std::pair<std::int64_t, std::size_t>> budget;  // requested bytes, where kv names it
  std::optional<std::pair<std::int64_t, std::size_t>> served_peak;
};

// a - b, saturating: sizes are claims like everything else.
std::int64_t above(std::int64_t a, std::int64_t b) { return elapsed_ns(b, a); }

// "1073741824 bytes (1.00 GiB)": exact, and as a person says it.
std::string size_text(std::int64_t bytes) {
  const double size = std::abs(static_cast<double>(bytes));
  if (size < 10 * 1048576.0) return fmt::format("{} bytes", bytes);
  const bool gib = size >= 1073741824.0;
  return fmt::format("{} bytes ({:.2f} {})", bytes,
                     static_cast<double>(bytes) / (gib ? 1073741824.0 : 1048576.0),
                     gib ? "GiB" : "MiB");
}

std::map<int, Rank> collect(const View& view) {
  std::map<int, Rank> out;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    Rank& rank = out[rank_of(e)];
    if (e.ev == "kv" && has_number(e, "budget_bytes")) rank.budget = {e.num("budget_bytes"), i};
    if (e.ev != "phase_end" || !has_number(e, "peak_bytes") || !has_number(e, "persistent_bytes"))
      continue;
    const std::string_view phase = view.phase(i);
    const std::int64_t peak = e.num("peak_bytes"), lasting = e.num("persistent_bytes");
    // Of profiling, what is left at its end is known to whoever sizes the cache. A later phase has
    // what lasted before it began; what it added for good it took too.
    if (phase == "profile") {
      rank.profile = {above(peak, lasting), i, "profile"};
    } else if (rank.profile && rank.lasting && (View::is_warmup(phase) || phase == "serve")) {
      const Use use{above(peak, *rank.lasting), i, std::string(phase)};
      if (!rank.later || use.bytes > rank.later->bytes) rank.later = use;
      if (phase == "serve") {
        rank.serve = use;
        rank.served_peak = {peak, i};
      }
    }
    rank.lasting = lasting;
  }
  return out;
}

class MemoryCovers : public Contract {
 public:
  std::string_view name() const override { return kMemoryCovers; }
  std::string_view promise() const override {
    return "serving takes no more step memory than profiling measured, and profiling not more than "
           "twice what any later phase takes plus 1 GiB";
  }
  std::vector<std::string> needs() const override { return {"phase_end"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    Fold fold, notes;
    bool measured = false, served = false;
    for (const auto& [number, rank] : collect(view)) {
      measured |= rank.profile.has_value();
      served |= rank.profile && rank.serve;
      if (!rank.profile) continue;
      const Use& profile = *rank.profile;
      if (rank.serve && above(rank.serve->bytes, profile.bytes) > kSameBytes)
        fold.add(too_small("peak", *rank.serve, profile, number), "peak");
      if (rank.budget && rank.served_peak &&
          above(rank.served_peak->first, rank.budget->first) > kSameBytes)
        fold.add(over_budget(*rank.budget, *rank.served_peak, number), "budget");
      if (rank.later && rank.later->phase != "serve" &&
          above(rank.later->bytes, profile.bytes) > kSameBytes)
        notes.add(too_small("start-up", *rank.later, profile, number), "start-up");
      if (rank.serve && rank.later &&
          static_cast<double>(profile.bytes) >
              kTooMany * static_cast<double>(rank.later->bytes) + static_cast<double>(kSlackBytes))
        fold.add(too_large(profile, *rank.later, number), "absurd");
    }
    Result result = conclude(kMemoryCovers, fold.take());
    if (result.findings.empty() && !measured)
      return not_observed(kMemoryCovers, {},
                          "no profiling said its peak_bytes and persistent_bytes");
    if (result.findings.empty() && !served)
      return not_observed(kMemoryCovers, {}, "the run ended before serving said its peak_bytes");
    if (result.findings.empty() && !view.served())
      return not_observed(kMemoryCovers, {}, nothing_served(view));
    result.notes = notes.take();
    return result;
  }

 private:
  static Finding base(std::string key, std::string phase, int rank) {
    Finding f;
    f.contract = kMemoryCovers;
    f.key = std::move(key);
    f.phase = std::move(phase);
    f.rank = rank;
    return f;
  }
  static Finding too_small(std::string key, const Use& use, const Use& profile, int rank) {
    Finding f = base(std::move(key), use.phase, rank);
    f.expected =
        fmt::format("at most {} of step memory, as profiling measured", size_text(profile.bytes));
    f.seen = fmt::format("{} in {}", size_text(use.bytes), use.phase);
    f.message = fmt::format(
        "{} took {} above what lasts, profiling {}: {} were left to the KV cache that are not "
        "there",
        use.phase, size_text(use.bytes), size_text(profile.bytes),
        size_text(above(use.bytes, profile.bytes)));
    f.events = {use.event, profile.event};
    return f;
  }
  static Finding too_large(const Use& profile, const Use& later, int rank) {
    Finding f = base("absurd", "profile", rank);
    f.expected =
        fmt::format("at most twice the {} of {}, and 1 GiB", size_text(later.bytes), later.phase);
    f.seen = fmt::format("{} in profile", size_text(profile.bytes));
    f.message = fmt::format(
        "profiling took {} of step memory, nothing after it more than {}: "
        "the difference is missing from the KV cache",
        size_text(profile.bytes), size_text(later.bytes));
    f.events = {profile.event, later.event};
    return f;
  }
  static Finding over_budget(const std::pair<std::int64_t, std::size_t>& budget,
                             const std::pair<std::int64_t, std::size_t>& peak, int rank) {
    Finding f = base("budget", "serve", rank);
    f.expected =
        fmt::format("at most the {} that the KV cache was sized within", size_text(budget.first));
    f.seen = fmt::format("{} in serve", size_text(peak.first));
    f.message = fmt::format(
        "serving took {} in all, {} more than the engine may: what is made "
        "after sizing was not counted",
        size_text(peak.first), size_text(above(peak.first, budget.first)));
    f.events = {peak.second, budget.second};
    return f;
  }
};

}  // namespace

const Contract& memory_covers_contract() {
  static const MemoryCovers contract;
  return contract;
}

}  // namespace warmgate::contract
