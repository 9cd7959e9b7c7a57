#include "harness/engine/ops/execute.h"

#include <algorithm>

#include "harness/engine/ops/device_fault.h"

namespace warmgate::engine {

void Executor::wait_for(const std::vector<std::string_view>& ops) const {
  try {
    device_.wait(ops.back().data());
  } catch (const DeviceFault& fault) {
    if (ops.size() == 1) throw;
    // Each of them ran before in this phase with arguments like these; which one failed now is not
    // known.
    std::vector<std::string_view> names(ops);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string text = "one of ";
    for (const std::string_view name : names) {
      if (name != names.front()) text += ", ";
      text += name;
    }
    throw DeviceFault(text, fault.code, "a launch that went well before in this phase");
  }
}

}  // namespace warmgate::engine
