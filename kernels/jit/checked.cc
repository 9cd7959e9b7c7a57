#include "kernels/jit/checked.h"

#include <utility>

namespace warmgate::jit {

KernelFault::KernelFault(std::string kind_of_fault, const std::string& operands,
                         const std::source_location& where)
    : std::runtime_error(operands), kind(std::move(kind_of_fault)), location(where) {}

void fault(const char* kind, std::int64_t a, const char* op, std::int64_t b,
           const std::source_location& where) {
  throw KernelFault(kind, std::to_string(a) + " " + op + " " + std::to_string(b), where);
}

}  // namespace warmgate::jit
