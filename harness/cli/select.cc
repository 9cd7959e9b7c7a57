#include "harness/cli/select.h"

#include <algorithm>

#include "harness/cli/nearest.h"

namespace warmgate::cli {

std::vector<const scenario::Variant*> select_variants(const scenario::Scenario& scenario,
                                                      const std::vector<std::string>& names) {
  const auto matches = [](const scenario::Variant& v, const std::string& name) {
    return v.name == name || v.base_name == name;
  };
  std::vector<scenario::Problem> problems;
  for (const std::string& name : names) {
    if (std::any_of(scenario.variants.begin(), scenario.variants.end(),
                    [&](const scenario::Variant& v) { return matches(v, name); }))
      continue;
    std::vector<std::string> known;
    std::string list;
    for (const scenario::Variant& v : scenario.variants) {
      known.push_back(v.name);
      list += (list.empty() ? "" : ", ") + v.name;
    }
    const std::string near = nearest(name, known);
    problems.push_back({scenario.path.string(), 0, 0, "",
                        "no variant '" + name + "'; there is " + list +
                            (near.empty() ? "" : "; did you mean '" + near + "'?")});
  }
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
  std::vector<const scenario::Variant*> out;
  for (const scenario::Variant& v : scenario.variants) {
    if (names.empty() || std::any_of(names.begin(), names.end(),
                                     [&](const std::string& name) { return matches(v, name); }))
      out.push_back(&v);
  }
  return out;
}

}  // namespace warmgate::cli
