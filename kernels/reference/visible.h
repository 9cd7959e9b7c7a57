// Which keys a query sees, by definition: from its position alone.
#pragma once

#include <cstdint>
#include <vector>

namespace warmgate::reference {

/// Raw positions max(0, p - window + 1) .. p, ascending.
std::vector<std::int64_t> visible_window(std::int64_t position, std::int64_t window);

/// Entries j whose tokens ratio*j .. ratio*j + ratio-1 all lie at or before p, ascending; none for
/// ratio 1.
std::vector<std::int64_t> visible_entries(std::int64_t position, std::int64_t ratio);

/// A non-causal draft block (DSpark): every token sees max(0, prefix - window) .. seq_len - 1.
/// vLLM at d40c3e3c00, vllm/v1/attention/backends/mla/sparse_swa.py.
std::vector<std::int64_t> visible_draft_block(std::int64_t prefix, std::int64_t seq_len,
                                              std::int64_t window);

}  // namespace warmgate::reference
