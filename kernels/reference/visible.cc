#include "kernels/reference/visible.h"

namespace warmgate::reference {

std::vector<std::int64_t> visible_window(std::int64_t position, std::int64_t window) {
  std::vector<std::int64_t> out;
  for (std::int64_t key = 0; key <= position; ++key) {
    if (position - key < window) out.push_back(key);
  }
  return out;
}

std::vector<std::int64_t> visible_entries(std::int64_t position, std::int64_t ratio) {
  std::vector<std::int64_t> out;
  if (ratio <= 1) return out;
  for (std::int64_t entry = 0; ratio * entry + ratio - 1 <= position; ++entry) {
    out.push_back(entry);
  }
  return out;
}

std::vector<std::int64_t> visible_draft_block(std::int64_t prefix, std::int64_t seq_len,
                                              std::int64_t window) {
  std::vector<std::int64_t> out;
  for (std::int64_t key = 0; key < seq_len; ++key) {
    if (key >= prefix - window) out.push_back(key);
  }
  return out;
}

}  // namespace warmgate::reference
