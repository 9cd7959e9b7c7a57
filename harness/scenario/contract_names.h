// The names that expect, gate and allow may use for contracts and comparisons. Here rather than in
// contract/, which may read scenario but not the other way round.
#pragma once

#include <string_view>
#include <vector>

namespace warmgate::scenario {

struct ContractName {
  std::string_view name;
  bool comparison;  // over two traces, or a trace and an accepted set
  std::string_view promise;
};

const std::vector<ContractName>& contract_names();
const ContractName* find_contract_name(std::string_view name);

}  // namespace warmgate::scenario
