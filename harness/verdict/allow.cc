#include "harness/verdict/allow.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/contract/view.h"
#include "harness/trace/glob.h"

namespace warmgate::verdict {
namespace {

std::string entry_text(const scenario::Allow& allow) {
  return fmt::format("allow {} \"{}\"", allow.contract, allow.match);
}

bool for_variant(const scenario::Allow& allow, std::string_view variant) {
  if (allow.variants.empty()) return true;
  return std::any_of(allow.variants.begin(), allow.variants.end(), [&](const std::string& name) {
    return name == variant || name == base_name(variant);
  });
}

const scenario::Allow* listed(const std::vector<scenario::Allow>& allow,
                              const contract::Finding& finding, std::string_view variant,
                              std::string_view today) {
  for (const scenario::Allow& entry : allow)
    if (applies(entry, variant, today) && matches(entry, finding.contract, finding.key))
      return &entry;
  return nullptr;
}

bool valid(const RunRecord& run) {
  return run.outcome != Outcome::kInfra && run.outcome != Outcome::kSkipped;
}

// Could this run have shown what the entry allows?
enum class Sight { kMatched, kSeen, kUnseen, kIrrelevant };
Sight sight(const scenario::Allow& entry, const RunRecord& run) {
  if (!for_variant(entry, run.variant) || !valid(run)) return Sight::kIrrelevant;
  for (const auto& a : run.allowed)
    if (matches(entry, a.finding.contract, a.finding.key)) return Sight::kMatched;
  const contract::Result* result = find_result(run, entry.contract);
  const bool judged = result && (result->state == contract::State::kKept ||
                                 result->state == contract::State::kBroken);
  if (judged) return Sight::kSeen;
  // A run that ended early shows nothing either way; its outcome is judged elsewhere.
  const bool early = run.outcome != Outcome::kPassed && run.outcome != Outcome::kFailed;
  return early ? Sight::kIrrelevant : Sight::kUnseen;
}

}  // namespace

bool expired(const scenario::Allow& allow, std::string_view today) {
  return !allow.until.empty() && !today.empty() && today > allow.until;  // ISO dates sort as text
}

bool applies(const scenario::Allow& allow, std::string_view variant, std::string_view today) {
  return !expired(allow, today) && for_variant(allow, variant);
}

bool matches(const scenario::Allow& allow, std::string_view contract, std::string_view key) {
  return allow.contract == contract && trace::glob_match(allow.match, key);
}

void apply_allow(const std::vector<scenario::Allow>& allow, std::string_view today,
                 RunRecord& run) {
  if (allow.empty()) return;
  for (contract::Result& result : run.contracts) {
    std::size_t moved = 0;
    for (auto* list : {&result.findings, &result.notes}) {
      std::erase_if(*list, [&](contract::Finding& finding) {
        const scenario::Allow* entry = listed(allow, finding, run.variant, today);
        if (!entry) return false;
        if (list == &result.findings) ++moved;
        run.allowed.push_back({std::move(finding), entry->reason, entry->issue, entry->where});
        return true;
      });
    }
    if (moved == 0) continue;
    const std::string text = contract::counted(moved, "finding") + " allowed";
    result.why = result.why.empty() ? text : result.why + "; " + text;
    if (result.findings.empty()) result.state = contract::State::kKept;
  }
}

std::vector<Check> check_allow(const std::vector<scenario::Allow>& allow,
                               const std::vector<const RunRecord*>& runs, bool all_variants_ran,
                               std::string_view today) {
  std::vector<Check> checks;
  for (const scenario::Allow& entry : allow) {
    Check check;
    check.what = entry_text(entry);
    check.note = entry.where;
    if (expired(entry, today)) {
      check.expected = "valid until " + entry.until;
      check.seen = fmt::format("expired; today is {}", today);
      check.verdict = Verdict::kFail;
      checks.push_back(std::move(check));
      continue;
    }
    bool matched = false, seen = false, unseen = false;
    for (const RunRecord* run : runs) {
      const Sight s = sight(entry, *run);
      matched |= s == Sight::kMatched;
      seen |= s == Sight::kSeen;
      unseen |= s == Sight::kUnseen;
    }
    if (matched) continue;
    check.expected = "matches a finding";
    const bool judged = all_variants_ran && seen && !unseen;
    check.seen = judged              ? "matches nothing any more; remove it"
                 : !all_variants_ran ? "matched nothing in the variants that ran"
                                     : "its contract was not observed where it could match";
    check.verdict = judged ? Verdict::kFail : Verdict::kSkip;
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace warmgate::verdict
