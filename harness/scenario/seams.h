// The seams: places where revisions of a modelled engine differed. A seam selects between
// implementations that all really run; the default keeps every contract.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgate::scenario {

struct SeamRule {
  std::string_view name;
  std::vector<std::string_view> values;  // the first is the default, which keeps all contracts
  std::string_view meaning;
  std::string_view origin;  // repo#number, path and symbol that differed, dates
};

const std::vector<SeamRule>& seams();
const SeamRule* find_seam(std::string_view name);

}  // namespace warmgate::scenario
