// The half of ranks-agree that judges what NCCL itself said.
#pragma once

#include <string>
#include <vector>

#include "harness/contract/communicators.h"
#include "harness/contract/contract.h"

namespace warmgate::contract {

struct OrderJudgement {
  std::vector<Finding> findings, notes;
  std::string why;  // what limits it
};

/// Holds the members of each communicator against each other: the same operations in the same
/// order, of the same size; and where the run hung, who never came.
OrderJudgement judge_order(const View& view, const std::vector<Communicator>& communicators);

}  // namespace warmgate::contract
