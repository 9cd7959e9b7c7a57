// The error table: what each step's op computed against its oracle.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/reference/compare.h"

namespace warmgate::numerics {

/// One line. A row with limit 0 is exact: bytes or integers that have to be equal.
struct Row {
  std::string step, inputs;
  double error = 0;  // worst row, ‖out − ref‖₂ / ‖ref‖₂
  double limit = 0;
  std::int64_t mismatches = 0;  // elements that differ where equality is promised
  std::int64_t poisoned =
      0;  // elements nobody wrote, or that should have been left alone and were not
  [[nodiscard]] bool right() const;
};

/// For stored values that are given the benefit of the doubt at rounding edges: then nothing is
/// left.
inline constexpr double kStoredLimit = 1e-6;

class Table {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// A row with an error and the limit of the numerics contract, 1/128.
  void error(std::string step, std::string inputs, double error, std::int64_t poisoned = 0,
             double limit = reference::kRowLimit);
  void exact(std::string step, std::string inputs, std::int64_t mismatches,
             std::int64_t poisoned = 0);
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  void print(std::FILE* to) const;

 private:
  std::vector<Row> rows_;
};

}  // namespace warmgate::numerics
