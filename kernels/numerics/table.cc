#include "kernels/numerics/table.h"

#include <fmt/format.h>

namespace warmgate::numerics {

bool Row::right() const {
  // Written so that a NaN is wrong.
  return error <= limit && mismatches == 0 && poisoned == 0;
}

void Table::error(std::string step, std::string inputs, double error, std::int64_t poisoned,
                  double limit) {
  add({std::move(step), std::move(inputs), error, limit, 0, poisoned});
}

void Table::exact(std::string step, std::string inputs, std::int64_t mismatches,
                  std::int64_t poisoned) {
  add({std::move(step), std::move(inputs), 0, 0, mismatches, poisoned});
}

void Table::print(std::FILE* to) const {
  fmt::print(to, "{:<40} {:<58} {:>10} {:>10}\n", "step", "inputs", "worst row", "limit");
  for (const Row& row : rows_) {
    const std::string seen = row.limit > 0         ? fmt::format("{:.2e}", row.error)
                             : row.mismatches == 0 ? "equal"
                                                   : fmt::format("{} differ", row.mismatches);
    const std::string limit = row.limit > 0 ? fmt::format("{:.2e}", row.limit) : "exact";
    fmt::print(to, "{:<40} {:<58} {:>10} {:>10}{}{}\n", row.step, row.inputs, seen, limit,
               row.poisoned != 0 ? fmt::format("  {} poisoned", row.poisoned) : "",
               row.right() ? "" : "  WRONG");
  }
}

}  // namespace warmgate::numerics
