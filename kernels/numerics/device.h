// Which device is measured: cpu, unless the program said otherwise.
#pragma once

#include <exception>

#include "kernels/kernels.h"
#include "kernels/numerics/inputs.h"
#include "kernels/numerics/table.h"

namespace warmgate::numerics {

/// Kernels of one call: at the end of the statement it waits for the device, as the host reads the
/// results next.
class OneCall {
 public:
  explicit OneCall(kernels::Kernels& kernels) : kernels_(kernels) {}
  OneCall(const OneCall&) = delete;
  OneCall& operator=(const OneCall&) = delete;
  ~OneCall() noexcept(false) {
    if (std::uncaught_exceptions() == thrown_before_) kernels_.synchronize();
  }
  kernels::Kernels* operator->() { return &kernels_; }

 private:
  kernels::Kernels& kernels_;
  int thrown_before_ = std::uncaught_exceptions();
};

/// device()->gemm({…}): inputs and outputs are memory that the device reaches.
OneCall device();
/// From now on. The kernels have to outlive all measurements.
void measure_on(kernels::Kernels& kernels);

/// Whether bits may be compared between two forms of one sum (batched and alone, decode and
/// prefill). kernels/cpu sums in one order; other devices promise no more than the limit.
bool one_order_of_sums();

/// A row for two results of the same sums, [n,width] each: equal bits where there is one order of
/// sums, else the limit for each row.
void same_sums(Table& table, std::string step, std::string inputs, const std::vector<Bf16>& got,
               const std::vector<Bf16>& want, std::int64_t width, std::int64_t poisoned = 0);
void same_sums(Table& table, std::string step, std::string inputs, const std::vector<float>& got,
               const std::vector<float>& want, std::int64_t width, std::int64_t poisoned = 0);

}  // namespace warmgate::numerics
