// For tests of whole steps: what was launched, and one request served.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "harness/engine/testing.h"

namespace warmgate::engine::testing {

using Launches = std::set<std::pair<std::string, std::string>>;  // layer kind, kernel

inline Launches launches(const std::vector<nlohmann::json>& events, const std::string& phase) {
  Launches out;
  for (const auto& e : events) {
    if (e["phase"] != phase) continue;
    out.emplace(e["layer_kind"].get<std::string>(), e["kernel"].get<std::string>());
  }
  return out;
}

inline Launches launches(const Rank& rank, const std::string& phase) {
  return launches(rank.events("launch"), phase);
}

inline std::set<std::string> keys(const std::vector<nlohmann::json>& events,
                                  const std::string& kernel) {
  std::set<std::string> out;
  for (const auto& e : events) {
    if (e["kernel"] == kernel) out.insert(e["key"].get<std::string>());
  }
  return out;
}

inline std::set<std::string> keys(const Rank& rank, const std::string& kernel) {
  return keys(rank.events("launch"), kernel);
}

/// One request, its blocks grown, one step.
inline void serve(Rank& rank, std::int64_t computed, std::int64_t query) {
  ASSERT_TRUE(rank.model().grow_request(0, computed + query));
  rank.model().step({{{0, computed, query}}, false}, false);
}

}  // namespace warmgate::engine::testing
