// What is demanded of runs: expect, gate, allow, needs, read and held against the names they use.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/check.h"
#include "harness/scenario/scenario.h"

namespace warmgate::scenario {

/// Names of variants as expect and allow may use them: those of the file ("A") and, with a matrix,
/// the expanded ones ("A[parallel.tp=2]").
struct VariantNames {
  bool from_file = false;  // the file has `variants`
  std::vector<std::string> base, full;
  bool has(const std::string& name) const;
};

/// Problems for expectations and allowances of variants that do not exist.
void check_variant_names(const NodePtr& scenario, const VariantNames& names, Problems& problems);

/// The expectation of one variant: of its base name, of its full name over that, and those of the
/// device's overlay over both.
Expectation expectation_of(const NodePtr& scenario, const std::string& base_name,
                           const std::string& name, const std::string& device,
                           const Vocabulary& vocabulary);

std::map<std::string, GateRule> gate_of(const NodePtr& scenario, const Vocabulary& vocabulary,
                                        Problems& problems);
std::vector<Allow> allow_of(const NodePtr& scenario);
Needs needs_of(const NodePtr& scenario);

}  // namespace warmgate::scenario
