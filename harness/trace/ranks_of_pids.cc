#include "harness/trace/ranks_of_pids.h"

#include <map>
#include <optional>

namespace warmgate::trace {

void name_ranks(Trace& trace) {
  std::map<std::int64_t, std::optional<int>> ranks;  // nothing: several
  for (const Event& e : trace.events) {
    if (e.ev != "hello" || !e.rank || *e.rank < 0 || e.num("pid") <= 0) continue;
    const auto [it, fresh] = ranks.try_emplace(e.num("pid"), *e.rank);
    if (!fresh && it->second != *e.rank) it->second.reset();
  }
  if (ranks.empty()) return;
  for (Event& e : trace.events) {
    if (e.rank || !e.body.contains("pid")) continue;
    const auto it = ranks.find(e.num("pid"));
    if (it != ranks.end()) e.rank = it->second;
  }
}

}  // namespace warmgate::trace
