// The kernels that are compiled at run time: their sources and what a key of each must carry.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/jit/jit.h"

namespace warmgate::jit {

/// How a field of a key is written, and what it becomes as a template argument.
enum class FieldKind {
  kConstant,   // a decimal 32-bit integer → itself
  kClass,      // one | div16 | any → 1 | 16 | 0
  kAlignment,  // a string of T and F, one letter a pointer → that many true | false
};

struct FieldSpec {
  std::string_view name;
  FieldKind kind = FieldKind::kConstant;
  int width = 1;  // letters of an alignment
};

struct KernelSpec {
  std::string_view name;
  std::string_view file;    // of the body, relative to the source tree
  std::string_view source;  // of the body
  std::vector<FieldSpec> fields;
};

/// In the order in which warmup compiles them.
const std::vector<KernelSpec>& kernels();
const KernelSpec* find_kernel(std::string_view name);
std::string_view device_prelude();

/// A key's template arguments, in order. Enough room for every kernel.
using Constants = std::array<std::int32_t, 12>;
/// Throws std::runtime_error saying what is wrong with the key, also if it is not `kernel`'s.
Constants constants_of(const Key& key, std::string_view kernel);
/// `Kernel<1,2,true>`, as NVRTC wants to be asked for it. Throws as constants_of does.
std::string name_expression(const Key& key);
/// A line of a body, without indentation; "" if there is none.
std::string source_line(std::string_view file, int line);

}  // namespace warmgate::jit
