// The first line of every explanation: is it mine, is it the infrastructure, is it known?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/explain/known.h"
#include "harness/explain/outside.h"
#include "harness/explain/reading.h"

namespace warmgate::explain {

struct Answer {
  enum class Kind {
    kStarts,          // nothing failed
    kMine,            // the engine, its model or its settings: nothing outside, nothing known
    kInfrastructure,  // the machine, its network, or somebody on it
    kKnown,           // a public regression
    kUnclear,         // it failed, and the log does not say enough
    kIncomplete       // the log ends, nothing has failed yet
  };
  Kind kind = Kind::kIncomplete;
  bool certain = true;
  std::string reason;  // one line, foreign text in it
  std::vector<OutsideCause> outside;
  std::vector<KnownMatch> known;
};

/// starts, mine, infrastructure, known, unclear, incomplete.
std::string_view to_string(Answer::Kind kind);

Symptom symptom_of(const Reading& reading);

/// `rules` and `known` have to outlive the answer.
Answer answer_of(const Reading& reading, const Ending& ending, const OutsideRules& rules,
                 const KnownSet& known);

}  // namespace warmgate::explain
