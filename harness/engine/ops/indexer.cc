#include "harness/engine/ops/indexer.h"

namespace warmgate::engine::ops {

std::string_view decode_topk_kernel(std::string_view arch, std::int64_t topk, std::int64_t rows,
                                    std::int64_t stride) {
  const bool known_k = topk == 512 || topk == 1024 || topk == 2048;
  const bool before_sm90 = arch.starts_with("sm_7") || arch.starts_with("sm_8");
  const bool sm12x = arch.starts_with("sm_12");
  if (known_k && rows <= 32 && stride % 4 == 0 && !before_sm90 && !sm12x) {
    return "cooperative_topk";
  }
  return known_k ? "persistent_topk" : "top_k_per_row_decode";
}

std::int64_t sm_count(std::string_view arch) {
  if (arch.starts_with("sm_80")) return 108;
  if (arch.starts_with("sm_10")) return 148;
  if (arch.starts_with("sm_12")) return 188;
  return 132;
}

bool flattens_queries(std::string_view arch, std::int64_t next_n) {
  return !arch.starts_with("sm_10") && next_n != 1 && next_n != 2;
}

}  // namespace warmgate::engine::ops
