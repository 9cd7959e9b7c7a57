#include "kernels/jit/host_backend.h"

#include <stdexcept>

#include "kernels/jit/kernel_table.h"

namespace warmgate::jit {

std::string key_problem(const Key& key) {
  if (find_kernel(key.kernel) == nullptr) return "key " + key.text() + ": no such kernel";
  try {
    constants_of(key, key.kernel);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Compiled compile_on_host(const Key& key, Mode mode) {
  Compiled out;
  out.backend = "host";
  if (mode == Mode::kLenient) {
    out.ok = true;
    return out;
  }
  const HostCheck check = check_on_host(key);
  out.ok = check.ok;
  if (check.ok) return out;
  out.log = check.fault + ": " + check.message;
  if (check.line > 0) out.log = check.file + "(" + std::to_string(check.line) + "): " + out.log;
  return out;
}

}  // namespace warmgate::jit
