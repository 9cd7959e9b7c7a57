#include "kernels/numerics/cases.h"

namespace warmgate::numerics {

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> out;
    for (const auto& part : {format_cases(), linear_cases(), position_cases(), cache_cases(),
                             metadata_cases(), compressor_cases(), indexer_cases(), topk_cases(),
                             attention_cases(), check_cases(), output_cases(), layer_cases()}) {
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }();
  return all;
}

}  // namespace warmgate::numerics
