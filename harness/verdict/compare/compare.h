// Judgements over two runs, or over a run and the accepted set.
#pragma once

#include <string>
#include <vector>

#include "harness/verdict/compare/accepted.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

/// capacity-equal: the KV slab of both sides has the same size in bytes. Tokens are no measure:
/// vLLM derives them from max_model_len. Further figures in bytes can be asked for, e.g.
/// workspace_bytes. Not observed where a side never reached the figure.
[[nodiscard]] contract::Result capacity_equal(const RunRecord& a, const RunRecord& b,
                                              const std::vector<std::string>& figures = {
                                                  "kv_bytes", "block_stride_bytes"});

/// The sets in which growth is worth a line: compiles_after_ready, skips, kernels, warnings.
const std::vector<std::string>& growth_sets();

/// set-growth: what B's sets have beyond A's. A finding a member, key "<set>/<member>". A set that
/// a side did not observe is not compared and named in `why`; not observed if none is left.
[[nodiscard]] contract::Result set_growth(const RunRecord& a, const RunRecord& b);
/// The same against what was accepted for the run's variant.
[[nodiscard]] contract::Result set_growth(const AcceptedVariant& accepted, const RunRecord& run);

}  // namespace warmgate::verdict
