// The host half in the compiler's place, for machines without NVRTC.
#pragma once

#include <string>

#include "kernels/jit/jit.h"

namespace warmgate::jit {

/// What is wrong with the key's form; "" if nothing is.
std::string key_problem(const Key& key);

/// Strictly, the body has to run; leniently, whatever has the form of a key is accepted, as the
/// lenient compiler does. The key's form must be right.
Compiled compile_on_host(const Key& key, Mode mode);

}  // namespace warmgate::jit
