#include "kernels/numerics/device.h"

#include <cstring>
#include <limits>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/reference/compare.h"

namespace warmgate::numerics {
namespace {

kernels::Kernels*& measured() {
  static kernels::CpuKernels cpu;
  static kernels::Kernels* kernels = &cpu;
  return kernels;
}

template <typename T, typename Rows>
void compare(Table& table, std::string step, std::string inputs, const std::vector<T>& got,
             const std::vector<T>& want, std::int64_t width, std::int64_t poisoned, Rows rows) {
  if (one_order_of_sums()) {
    return table.exact(std::move(step), std::move(inputs), differing(got, want), poisoned);
  }
  const bool comparable = got.size() == want.size();
  const double error = comparable ? reference::worst_row(rows(got, width), rows(want, width)).error
                                  : std::numeric_limits<double>::infinity();
  table.error(std::move(step), std::move(inputs), error, poisoned);
}

}  // namespace

OneCall device() { return OneCall(*measured()); }
void measure_on(kernels::Kernels& kernels) { measured() = &kernels; }
bool one_order_of_sums() { return std::strcmp(measured()->device(), "cpu") == 0; }

void same_sums(Table& table, std::string step, std::string inputs, const std::vector<Bf16>& got,
               const std::vector<Bf16>& want, std::int64_t width, std::int64_t poisoned) {
  compare(table, std::move(step), std::move(inputs), got, want, width, poisoned,
          [](const std::vector<Bf16>& v, std::int64_t cols) { return rows_bf16(v, cols); });
}

void same_sums(Table& table, std::string step, std::string inputs, const std::vector<float>& got,
               const std::vector<float>& want, std::int64_t width, std::int64_t poisoned) {
  compare(table, std::move(step), std::move(inputs), got, want, width, poisoned,
          [](const std::vector<float>& v, std::int64_t cols) { return rows_fp32(v, cols); });
}

}  // namespace warmgate::numerics
