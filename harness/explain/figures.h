// Figures as they are printed, worker by worker, and what becomes of them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "harness/explain/grammar.h"
#include "harness/explain/timeline.h"
#include "harness/explain/workers.h"

namespace warmgate::explain::internal {

/// "280,480" → 280480, "21.40" → 21.4; what is no number stays text (bounded).
nlohmann::json printed_value(std::string_view text);

class FigureStore {
 public:
  /// `span`: the one that the line stands in, -1 = none.
  void take(const Grammar& grammar, int figure, int worker, int span, const nlohmann::json& value);
  void reset(int figure);
  /// Figures by name, derived ones included. `timelines`: of the sources.
  std::map<std::string, nlohmann::json> result(const Grammar& grammar, const Workers& workers,
                                               const std::vector<const Timeline*>& timelines) const;

 private:
  struct Cell {
    nlohmann::json last, first, nth, low, high;
    double sum = 0;
    bool whole = true;  // all numbers so far were whole
    int count = 0;
    int span = -1;
    std::uint64_t order = 0;
  };
  nlohmann::json folded(const FigureRule& rule, const Cell& cell) const;
  nlohmann::json over_ranks(const FigureRule& rule, const std::map<int, Cell>& cells,
                            const Workers& workers) const;

  std::map<int, std::map<int, Cell>> cells_;  // figure → worker
  std::uint64_t order_ = 0;
};

}  // namespace warmgate::explain::internal
