// Small checks that ops' can_run share. Each gives the reason or nothing.
#pragma once

#include <fmt/format.h>

#include "harness/engine/ops/execute.h"

namespace warmgate::engine::ops {

inline std::string shape_text(const Tensor& t) {
  std::string out = "[";
  for (int i = 0; i < t.rank; ++i) out += (i > 0 ? "," : "") + std::to_string(t.dim(i));
  return out + "] " + std::string(to_string(t.dtype));
}

/// `rows` rows of `t` are about to be read or written.
inline Reason holds_rows(const char* name, const Tensor& t, std::int64_t rows) {
  if (t.present() && rows <= t.rows()) [[likely]]
    return {};
  return fmt::format("{} rows are needed, {} {} holds {}", rows, name, shape_text(t), t.rows());
}
inline Reason is_type(const char* name, const Tensor& t, DType dtype) {
  if (t.dtype == dtype) [[likely]]
    return {};
  return fmt::format("{} is {}, must be {}", name, shape_text(t), to_string(dtype));
}
inline Reason same(const char* what, std::int64_t a, std::int64_t b) {
  if (a == b) [[likely]]
    return {};
  return fmt::format("{}: {} against {}", what, a, b);
}
inline Reason first(Reason a) { return a; }
template <class... Rest>
Reason first(Reason a, Rest... rest) {
  if (a) return a;
  return first(std::move(rest)...);
}

}  // namespace warmgate::engine::ops
